// SPDX-License-Identifier: Apache-2.0
//! For a build without the Kafka client.

use turboflow_formats::FlowWriter;

use crate::{KafkaError, KafkaOptions, KafkaTarget, Records};

pub(crate) fn send_to(
    _target: &KafkaTarget,
    _records: &Records<'_>,
    _options: &KafkaOptions,
) -> Result<Box<dyn FlowWriter>, KafkaError> {
    Err(KafkaError::NotBuilt)
}

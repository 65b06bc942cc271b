// SPDX-License-Identifier: Apache-2.0
//! SQL functions for addresses and durations.

use std::net::IpAddr;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, StringBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::cast::{as_int64_array, as_string_array};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

/// The functions that TurboFlow adds to those of DataFusion.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    [Function::InNetwork, Function::Network, Function::Seconds]
        .into_iter()
        .map(|function| ScalarUDF::new_from_impl(Ours::new(function)))
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    InNetwork,
    Network,
    Seconds,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Ours {
    function: Function,
    signature: Signature,
}

impl Ours {
    fn new(function: Function) -> Self {
        let exact = |types: &[DataType]| TypeSignature::Exact(types.to_vec());
        let (text, number) = (DataType::Utf8, DataType::Int64);
        let takes = match function {
            Function::InNetwork => exact(&[text.clone(), text]),
            Function::Network => TypeSignature::OneOf(vec![
                exact(&[text.clone(), number.clone()]),
                exact(&[text, number.clone(), number]),
            ]),
            Function::Seconds => TypeSignature::OneOf(
                [
                    TimeUnit::Nanosecond,
                    TimeUnit::Microsecond,
                    TimeUnit::Millisecond,
                    TimeUnit::Second,
                ]
                .map(|unit| exact(&[DataType::Duration(unit)]))
                .to_vec(),
            ),
        };
        Self {
            function,
            signature: Signature::new(takes, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Ours {
    fn name(&self) -> &str {
        match self.function {
            Function::InNetwork => "in_network",
            Function::Network => "network",
            Function::Seconds => "seconds",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.function {
            Function::InNetwork => DataType::Boolean,
            Function::Network => DataType::Utf8,
            Function::Seconds => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, given: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&given.args)?;
        let answer: ArrayRef = match self.function {
            Function::InNetwork => Arc::new(in_network(&arrays)?),
            Function::Network => Arc::new(network(&arrays)?),
            Function::Seconds => Arc::new(seconds(&arrays[0])?),
        };
        Ok(ColumnarValue::Array(answer))
    }
}

/// An address and its prefix length.
type Network = (IpAddr, u32);

fn in_network(given: &[ArrayRef]) -> Result<BooleanArray> {
    let (addresses, networks) = (as_string_array(&given[0])?, as_string_array(&given[1])?);
    // Nearly always all rows have the same network, so it is parsed only once.
    let mut last: Option<(&str, Network)> = None;
    let rows = addresses.iter().zip(networks).map(|pair| {
        let (Some(address), Some(text)) = pair else {
            return Ok(None);
        };
        let network = match last {
            Some((of, network)) if of == text => network,
            _ => network_of(text)?,
        };
        last = Some((text, network));
        let (within, length) = network;
        let Ok(address) = address.parse::<IpAddr>() else {
            return Ok(None);
        };
        Ok(Some(
            address.is_ipv4() == within.is_ipv4() && masked(address, length) == within,
        ))
    });
    rows.collect()
}

fn network_of(text: &str) -> Result<Network> {
    let wrong = || {
        DataFusionError::Execution(format!(
            "in_network: {text:?} is not a network: write 10.0.0.0/8, 2001:db8::/32 or an address"
        ))
    };
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.parse::<u32>().map_err(|_| wrong())?)),
        None => (text, None),
    };
    let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
    let bits = bits_of(address);
    let length = length.unwrap_or(bits);
    match length <= bits {
        true => Ok((masked(address, length), length)),
        false => Err(wrong()),
    }
}

const fn bits_of(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The first `length` bits of an address, followed by zeros.
fn masked(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(its) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            IpAddr::V4((its.to_bits() & mask).into())
        }
        IpAddr::V6(its) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            IpAddr::V6((its.to_bits() & mask).into())
        }
    }
}

fn network(given: &[ArrayRef]) -> Result<StringArray> {
    let addresses = as_string_array(&given[0])?;
    let v4 = as_int64_array(&given[1])?;
    let v6 = given
        .get(2)
        .map(|lengths| as_int64_array(lengths))
        .transpose()?;
    let mut networks = StringBuilder::new();
    for row in 0..addresses.len() {
        let address = addresses.is_valid(row).then(|| addresses.value(row));
        let Some(address) = address.and_then(|text| text.parse::<IpAddr>().ok()) else {
            networks.append_null();
            continue;
        };
        let lengths = match (address, v6) {
            (IpAddr::V6(_), Some(v6)) => v6,
            _ => v4,
        };
        let Some(length) = length_at(lengths, row, bits_of(address))? else {
            networks.append_null();
            continue;
        };
        networks.append_value(format!("{}/{length}", masked(address, length)));
    }
    Ok(networks.finish())
}

fn length_at(lengths: &Int64Array, row: usize, bits: u32) -> Result<Option<u32>> {
    if lengths.is_null(row) {
        return Ok(None);
    }
    let length = u32::try_from(lengths.value(row)).ok();
    length
        .filter(|length| *length <= bits)
        .map(Some)
        .ok_or_else(|| {
            DataFusionError::Execution(format!(
                "network: an address of {bits} bits has no network of {}: write 0 to {bits}",
                lengths.value(row)
            ))
        })
}

fn seconds(durations: &ArrayRef) -> Result<Float64Array> {
    let nanoseconds = cast(durations, &DataType::Duration(TimeUnit::Nanosecond))?;
    let numbers = cast(&nanoseconds, &DataType::Int64)?;
    let seconds = as_int64_array(&numbers)?.iter();
    Ok(seconds.map(|ns| ns.map(|ns| ns as f64 / 1e9)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses_alone() {
        let (inside, outside) = (
            [
                ("10.1.2.3", "10.0.0.0/8"),
                ("10.1.2.3", "10.1.2.3"),
                ("::1", "::/0"),
                ("1.2.3.4", "0.0.0.0/0"),
            ],
            [
                ("11.1.2.3", "10.0.0.0/8"),
                ("10.1.2.4", "10.1.2.3"),
                ("::1", "0.0.0.0/0"),
                ("2001:db9::", "2001:db8::/32"),
            ],
        );
        for (pairs, is_inside) in [(inside, true), (outside, false)] {
            for (address, network) in pairs {
                let given = [address, network]
                    .map(|text| Arc::new(StringArray::from(vec![text])) as ArrayRef);
                let answer = in_network(&given).expect("the network is one");
                assert_eq!(answer.value(0), is_inside, "{address} in {network}");
            }
        }
        for wrong in ["10.0.0.0/33", "10/8", "", "::/129", "10.0.0.0/-1"] {
            assert!(network_of(wrong).is_err(), "{wrong}");
        }
    }
}

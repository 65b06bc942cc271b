// SPDX-License-Identifier: Apache-2.0
//! Where the paper disagrees with itself.

/// A statement of the paper, and in a sentence what is wrong with it.
pub(super) struct Disagreement {
    /// The equation, table or subject, by which a reader finds the statement.
    pub(super) about: &'static str,
    pub(super) sentence: &'static str,
}

/// All disagreements that were found. Tests of the model compute those that are numbers.
pub(super) const DISAGREEMENTS: [Disagreement; 11] = [
    Disagreement {
        about: "Equation 1",
        sentence: "it has `L_uwl`, which is `L_uwr` in Tables 1 and 3, and Table 3 has `L_ufc` \
                   and `L_ufft`, which no equation uses",
    },
    Disagreement {
        about: "100 Gb/s",
        sentence: "Equation 1 with Table 3 gives 5 clocks for a new key, which at 358 MHz are \
                   71.6 M new keys/s, less than half of the 148.8 M frames of 64 bytes that \
                   100 Gb/s carry, so line rate holds for the trace's mean of 910 bytes only",
    },
    Disagreement {
        about: "Equation 2",
        sentence: "it multiplies the size of a key with the time that it takes, and so is \
                   inverted",
    },
    Disagreement {
        about: "Equation 3",
        sentence: "it counts the hash in every later stage, although the hash is computed once \
                   before stage 1 and Equation 4 counts it again",
    },
    Disagreement {
        about: "Equation 4",
        sentence: "the sum of 1 to N - 1, over N, is (N - 1)/2, not N/2",
    },
    Disagreement {
        about: "100 % accuracy",
        sentence: "a flow that the flow-key cache has forgotten gets a second record, because \
                   buckets are never searched, so counts are right only once the host has added \
                   them up",
    },
    Disagreement {
        about: "eviction",
        sentence: "section 3.4 removes a candidate that was accessed, and also all others once \
                   the threshold is reached, so read literally active flows leave; only those \
                   that were not accessed may",
    },
    Disagreement {
        about: "partial keys",
        sentence: "section 3.5 checks the whole key after a match of the cache, which is one more \
                   access than the single clock of `L_lfc` in Table 3, and does not say what \
                   follows if it differs",
    },
    Disagreement {
        about: "tracking table",
        sentence: "its field is \"cnt\" in data paths 2 and 3 and \"record time\" below, and its \
                   entries are removed by telling stage 2, although the table is in stage 1",
    },
    Disagreement {
        about: "which flows the cache keeps",
        sentence: "section 3.3 says that storing the mice raises the hit ratio, and therefore \
                   keeps the elephants",
    },
    Disagreement {
        about: "Table 2",
        sentence: "142K of a VU9P's 1,182K LUTs are 12.0 %, not 6.6 %, and of its 2,364K \
                   flip-flops 160K and 188K are 6.8 and 8.0 %, not 5.5 and 6.8 %",
    },
];

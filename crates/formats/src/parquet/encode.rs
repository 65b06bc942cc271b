// SPDX-License-Identifier: Apache-2.0
//! The three Parquet encodings for numbers and levels, written directly into page bytes (Apache
//! Parquet, "Encodings").

/// Appends an unsigned LEB128 number.
pub(crate) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends a signed number in zigzag encoding.
fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, (value << 1 ^ value >> 63) as u64);
}

/// Number of bits that `value` needs.
pub(crate) const fn bits_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends `values`, each in `width` bits, least significant first, padded to a whole byte.
fn pack(bytes: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let (mut word, mut used) = (0u128, 0);
    for value in values {
        word |= u128::from(value) << used;
        used += width;
        if used >= 64 {
            bytes.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= 64;
            used -= 64;
        }
    }
    let rest = used.div_ceil(8) as usize;
    bytes.extend_from_slice(&(word as u64).to_le_bytes()[..rest]);
}

/// RLE / bit-packing hybrid: one RLE run if all values are equal, else one bit-packed run.
pub(crate) fn hybrid(bytes: &mut Vec<u8>, values: &[u32], width: u32) {
    let Some(&first) = values.first() else { return };
    if values.iter().all(|&value| value == first) {
        varint(bytes, (values.len() as u64) << 1);
        let value_bytes = width.div_ceil(8) as usize;
        bytes.extend_from_slice(&first.to_le_bytes()[..value_bytes]);
        return;
    }
    let groups = values.len().div_ceil(8);
    varint(bytes, (groups as u64) << 1 | 1);
    let padding = groups * 8 - values.len();
    let padded = values
        .iter()
        .copied()
        .chain(std::iter::repeat_n(0, padding));
    pack(bytes, padded.map(u64::from), width);
}

/// Number of values in a `DELTA_BINARY_PACKED` block; below, in one of its miniblocks.
const BLOCK_VALUES: usize = 128;
const PART_VALUES: usize = 32;

/// `DELTA_BINARY_PACKED`. With `narrow`, numbers and differences wrap at 32 bits.
pub(crate) fn delta(bytes: &mut Vec<u8>, values: &[i64], narrow: bool) {
    let cut = |value: i64| {
        if narrow {
            i64::from(value as i32)
        } else {
            value
        }
    };
    varint(bytes, BLOCK_VALUES as u64);
    varint(bytes, (BLOCK_VALUES / PART_VALUES) as u64);
    varint(bytes, values.len() as u64);
    let Some(&first) = values.first() else {
        return varint(bytes, 0);
    };
    zigzag(bytes, cut(first));
    let mut previous = first;
    let mut deltas = [0; BLOCK_VALUES];
    for block in values[1..].chunks(BLOCK_VALUES) {
        for (delta, &value) in deltas.iter_mut().zip(block) {
            *delta = cut(value.wrapping_sub(previous));
            previous = value;
        }
        delta_block(bytes, &deltas[..block.len()]);
    }
}

fn delta_block(bytes: &mut Vec<u8>, deltas: &[i64]) {
    let least = deltas.iter().copied().min().unwrap_or(0);
    zigzag(bytes, least);
    let widths = bytes.len();
    bytes.extend_from_slice(&[0; BLOCK_VALUES / PART_VALUES]);
    for (index, part) in deltas.chunks(PART_VALUES).enumerate() {
        let over = |delta: i64| delta.wrapping_sub(least) as u64;
        let width = bits_of(part.iter().fold(0, |bits, &delta| bits | over(delta)));
        bytes[widths + index] = width as u8;
        // The last miniblock of the last block is padded to its full length.
        let padding = std::iter::repeat_n(0, PART_VALUES - part.len());
        pack(
            bytes,
            part.iter().map(|&delta| over(delta)).chain(padding),
            width,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_example_of_the_specification() {
        // "Encodings", DELTA_BINARY_PACKED, example 2: 7, 5, 3, 1, 2, 3, 4, 5.
        let mut bytes = Vec::new();
        delta(&mut bytes, &[7, 5, 3, 1, 2, 3, 4, 5], false);
        let part = [0xc0, 0x3f, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes[..10], [0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0]);
        assert_eq!(bytes[10..], part);
    }

    #[test]
    fn packs_the_example_of_the_specification() {
        // The numbers 0 to 7 in 3 bits each are 0b10001000 0b11000110 0b11111010.
        let mut bytes = Vec::new();
        hybrid(&mut bytes, &[0, 1, 2, 3, 4, 5, 6, 7], 3);
        assert_eq!(bytes, [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        bytes.clear();
        hybrid(&mut bytes, &[4; 100], 3);
        assert_eq!(bytes, [200, 1, 4]);
    }
}

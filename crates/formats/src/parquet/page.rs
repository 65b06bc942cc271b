// SPDX-License-Identifier: Apache-2.0
//! The pages of one column chunk: compression, headers, counts.

use bytes::Bytes;
use parquet::basic::{Compression as Codec, CompressionCodec, Encoding, PageType, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::zstd_safe::{CParameter, ParamSwitch};

use crate::Compression;

/// The library's type for a compression.
pub(crate) fn codec_of(compression: Compression) -> Result<Codec> {
    Ok(match compression {
        Compression::None => Codec::UNCOMPRESSED,
        Compression::Snappy => Codec::SNAPPY,
        Compression::Zstd { level } => Codec::ZSTD(ZstdLevel::try_new(level)?),
    })
}

/// Compresses pages, one after another.
pub(crate) enum Compressor {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zstd {
        thorough: zstd::bulk::Compressor<'static>,
        /// For pages without repeated sequences: it only entropy-codes single bytes, at a third of
        /// the cost.
        quick: zstd::bulk::Compressor<'static>,
    },
}

/// A negative zstd level, which skips ahead where nothing repeats.
const QUICK_LEVEL: i32 = -100;

impl Compressor {
    pub(crate) fn new(compression: Compression) -> std::io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None,
            Compression::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Zstd { level } => {
                let mut quick = zstd::bulk::Compressor::new(QUICK_LEVEL)?;
                // By default, negative levels do not entropy-code literals.
                let bytes_too = CParameter::LiteralCompressionMode(ParamSwitch::Enable);
                quick.set_parameter(bytes_too)?;
                Self::Zstd {
                    thorough: zstd::bulk::Compressor::new(level)?,
                    quick,
                }
            }
        })
    }

    /// Compresses a page; `random` means that hardly any sequence in it repeats.
    fn compress(&mut self, bytes: &[u8], random: bool) -> Result<Bytes> {
        Ok(match self {
            Self::None => Bytes::copy_from_slice(bytes),
            Self::Snappy(encoder) => encoder.compress_vec(bytes)?.into(),
            Self::Zstd { quick, .. } if random => quick.compress(bytes)?.into(),
            Self::Zstd { thorough, .. } => thorough.compress(bytes)?.into(),
        })
    }
}

/// The data pages of a column chunk, as written to the file.
pub(crate) struct Pages {
    tracked: TrackedWrite<Vec<u8>>,
    uncompressed_bytes: usize,
    /// Numbers of data pages by encoding.
    counts: Vec<(Encoding, i32)>,
    values: i64,
    /// Number of data pages still to be compressed quickly, because an earlier page hardly shrank.
    random: u32,
    /// Whether texts differ so much that thorough compression gains less than an eighth; `None`
    /// before the first page of texts.
    texts_differ: Option<bool>,
}

/// Thorough compression is tried again after this many pages.
const RANDOM_PAGES: u32 = 15;

/// What is needed to end a chunk.
pub(crate) struct Ending {
    /// Number of distinct values, and their `PLAIN` bytes; `None` if no page refers to a
    /// dictionary.
    pub(crate) dictionary: Option<(u32, Vec<u8>)>,
    pub(crate) statistics: Statistics,
    pub(crate) rows: u64,
}

impl Pages {
    pub(crate) fn new() -> Self {
        let tracked = TrackedWrite::new(Vec::new());
        Self {
            tracked,
            uncompressed_bytes: 0,
            counts: Vec::new(),
            values: 0,
            random: 0,
            texts_differ: None,
        }
    }

    /// Whether any page refers to a dictionary.
    pub(crate) fn use_dictionary(&self) -> bool {
        self.counts
            .iter()
            .any(|(encoding, _)| *encoding == Encoding::RLE_DICTIONARY)
    }

    /// Appends a data page of `values` values, including absent ones.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        values: usize,
        encoding: Encoding,
        compressor: &mut Compressor,
    ) -> Result<()> {
        let compressed = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => self.compress_texts(bytes, compressor)?,
            _ => compressor.compress(bytes, self.random > 0)?,
        };
        let gained = compressed.len() < bytes.len() / 16 * 15;
        self.random = match self.random {
            0 if gained => 0,
            0 => RANDOM_PAGES,
            random => random - 1,
        };
        let page = Page::DataPage {
            buf: compressed,
            num_values: values as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.values += values as i64;
        match self.counts.iter_mut().find(|(known, _)| *known == encoding) {
            Some((_, count)) => *count += 1,
            None => self.counts.push((encoding, 1)),
        }
        self.uncompressed_bytes += write(&mut self.tracked, page, bytes.len())?;
        Ok(())
    }

    /// Compresses a page of texts. Distinct texts may still share substrings, as addresses of one
    /// network do. The first page decides how thoroughly all pages are compressed.
    fn compress_texts(&mut self, bytes: &[u8], compressor: &mut Compressor) -> Result<Bytes> {
        if let Some(differ) = self.texts_differ {
            return compressor.compress(bytes, differ);
        }
        let thorough = compressor.compress(bytes, false)?;
        let quick = compressor.compress(bytes, true)?;
        let differ = quick.len() <= thorough.len() / 8 * 9;
        self.texts_differ = Some(differ);
        Ok(if differ { quick } else { thorough })
    }

    /// Writes the dictionary before the data pages, and returns the metadata of the chunk.
    pub(crate) fn close(
        self,
        ending: Ending,
        descriptor: ColumnDescPtr,
        codec: Codec,
        compressor: &mut Compressor,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let mut chunk = TrackedWrite::new(Vec::new());
        let mut uncompressed_bytes = self.uncompressed_bytes;
        let (mut stats, mut encodings) = (Vec::new(), vec![Encoding::RLE]);
        let stat = |page_type, encoding, count| PageEncodingStats {
            page_type,
            encoding,
            count,
        };
        let has_dictionary = ending.dictionary.is_some();
        if let Some((values, bytes)) = ending.dictionary {
            let page = Page::DictionaryPage {
                buf: compressor.compress(&bytes, false)?,
                num_values: values,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            uncompressed_bytes += write(&mut chunk, page, bytes.len())?;
            stats.push(stat(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
            encodings.push(Encoding::PLAIN);
        }
        for (encoding, count) in self.counts {
            stats.push(stat(PageType::DATA_PAGE, encoding, count));
            encodings.push(encoding);
        }
        let mut chunk = chunk.into_inner()?;
        let data_page_offset = chunk.len() as i64;
        chunk.append(&mut self.tracked.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(descriptor)
            .set_compression_codec(CompressionCodec::from(codec))
            .set_encodings(encodings)
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(chunk.len() as i64)
            .set_total_uncompressed_size(uncompressed_bytes as i64)
            .set_num_values(self.values)
            .set_data_page_offset(data_page_offset)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_statistics(ending.statistics)
            .build()?;
        let result = ColumnCloseResult {
            bytes_written: chunk.len() as u64,
            rows_written: ending.rows,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((chunk.into(), result))
    }
}

/// Writes one page and returns its size before compression, including the header.
fn write(sink: &mut TrackedWrite<Vec<u8>>, page: Page, uncompressed: usize) -> Result<usize> {
    let mut writer = SerializedPageWriter::new(sink);
    Ok(writer
        .write_page(CompressedPage::new(page, uncompressed))?
        .uncompressed_size)
}

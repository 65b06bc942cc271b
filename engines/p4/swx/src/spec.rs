// SPDX-License-Identifier: Apache-2.0
//! Reads a `.spec`, as far as our programs need it: DPDK 22.11 has its own parser, but does not
//! export it.

use anyhow::{Context, bail};

/// The parts of a program, in order.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Spec {
    pub(crate) parts: Vec<Part>,
}

/// A part of a program.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    /// A structure: fields with their bits. Up to its bits, the last one may have any length.
    Struct {
        name: String,
        fields: Vec<(String, u32)>,
        last_varies: bool,
    },
    Header {
        name: String,
        of: String,
    },
    Metadata {
        of: String,
    },
    Registers {
        name: String,
        count: u32,
        value: u64,
    },
    Action {
        name: String,
        args: Option<String>,
        instructions: Vec<String>,
    },
    /// The instructions for each packet. The last part.
    Apply {
        instructions: Vec<String>,
    },
}

impl Spec {
    /// Parses a program.
    ///
    /// # Errors
    /// The first line that cannot be parsed.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut spec = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let mut block = || {
                let of_block = lines.by_ref().map(|(_, line)| line.trim());
                let of_block = of_block.take_while(|line| *line != "}");
                let full = of_block.filter(|line| !line.is_empty());
                full.map(str::to_owned).collect::<Vec<_>>()
            };
            let part = match words[..] {
                [] => continue,
                [comment, ..] if comment.starts_with("//") || comment.starts_with(';') => continue,
                ["struct", name, "{"] => structure(name, &block()),
                ["header", name, "instanceof", of] => Ok(Part::Header {
                    name: name.to_owned(),
                    of: of.to_owned(),
                }),
                ["metadata", "instanceof", of] => Ok(Part::Metadata { of: of.to_owned() }),
                ["regarray", name, "size", count, "initval", value] => {
                    registers(name, count, value)
                }
                ["action", name, "args", args, "{"] => Ok(Part::Action {
                    name: name.to_owned(),
                    args: args_of(args),
                    instructions: block(),
                }),
                ["action", name, "args", "instanceof", args, "{"] => Ok(Part::Action {
                    name: name.to_owned(),
                    args: args_of(args),
                    instructions: block(),
                }),
                ["apply", "{"] => Ok(Part::Apply {
                    instructions: block(),
                }),
                _ => bail!("line {}: `{}` is not understood", number + 1, line.trim()),
            };
            let part = part.with_context(|| format!("line {}", number + 1))?;
            spec.parts.push(part);
        }
        match spec.parts.last() {
            Some(Part::Apply { .. }) => Ok(spec),
            _ => bail!("the program does not end with `apply`"),
        }
    }
}

fn args_of(args: &str) -> Option<String> {
    (args != "none").then(|| args.to_owned())
}

fn structure(name: &str, lines: &[String]) -> anyhow::Result<Part> {
    let mut fields = Vec::new();
    let mut last_varies = false;
    for line in lines {
        let (kind, field) = line.split_once(char::is_whitespace).context("no field")?;
        let fixed = kind.strip_prefix("bit<");
        let varies = kind.strip_prefix("varbit<");
        let bits = fixed.or(varies).and_then(|bits| bits.strip_suffix('>'));
        let bits = bits.with_context(|| format!("`{kind}` is not a type"))?;
        last_varies = varies.is_some();
        fields.push((field.trim().to_owned(), bits.parse()?));
    }
    Ok(Part::Struct {
        name: name.to_owned(),
        fields,
        last_varies,
    })
}

fn registers(name: &str, count: &str, value: &str) -> anyhow::Result<Part> {
    Ok(Part::Registers {
        name: name.to_owned(),
        count: u32::try_from(number(count)?)?,
        value: number(value)?,
    })
}

fn number(text: &str) -> anyhow::Result<u64> {
    let hex = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    Ok(match hex {
        Some(digits) => u64::from_str_radix(digits, 16)?,
        None => text.parse()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_part() {
        let text = "// made by a compiler\n\nstruct tag_t {\n\tbit<16> tci\n\tvarbit<320> rest\n}\n\
            header tag instanceof tag_t\nmetadata instanceof metadata_t\n\
            regarray cell_reg size 0x10 initval 0x0\naction NoAction args none {\n\treturn\n}\n\
            apply {\n\trx m.port\n\n\ttx m.port\n}\n";
        let spec = Spec::parse(text).expect("it is a program");
        assert_eq!(spec.parts.len(), 6);
        assert_eq!(
            spec.parts[0],
            Part::Struct {
                name: "tag_t".to_owned(),
                fields: vec![("tci".to_owned(), 16), ("rest".to_owned(), 320)],
                last_varies: true,
            }
        );
        let instructions = vec!["rx m.port".to_owned(), "tx m.port".to_owned()];
        assert_eq!(spec.parts[5], Part::Apply { instructions });
    }

    #[test]
    fn names_the_line_that_it_does_not_understand() {
        let error = |text| Spec::parse(text).expect_err("no program").to_string();
        assert_eq!(
            error("\ntable x {\n"),
            "line 2: `table x {` is not understood"
        );
        assert_eq!(error("struct x {\nword y\n}\n"), "line 1");
        assert!(error("metadata instanceof x\n").contains("apply"));
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The tokens of an expression, with their positions.

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// The text of the token, without quotes.
    pub(crate) text: &'a str,
    /// Start and end in bytes.
    pub(crate) span: (usize, usize),
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, number, address, ...
    Word,
    /// A quoted text.
    Quoted,
    /// `==`, `(`, `,`, ...
    Sign,
    /// A character that is not valid in expressions.
    Strange,
    /// The end of the expression.
    End,
}

/// The longest come first, so that `<=` is not read as `<`.
const SIGNS: [&str; 14] = [
    "==", "!=", "<=", ">=", "&&", "||", "=", "<", ">", "!", "(", ")", ",", "&",
];

/// The tokens of `text`, followed by an end token.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let (kind, length) = if is_word(first) {
            (Kind::Word, rest.find(|c| !is_word(c)).unwrap_or(rest.len()))
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).map(|end| end + 2);
            end.map_or((Kind::Strange, rest.len()), |end| (Kind::Quoted, end))
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Kind::Sign, sign.len())
        } else {
            (Kind::Strange, first.len_utf8())
        };
        let word = &rest[..length];
        let inner = if kind == Kind::Quoted {
            &word[1..length - 1]
        } else {
            word
        };
        tokens.push(Token {
            kind,
            text: inner,
            span: (at, at + length),
        });
        at += length;
    }
    tokens.push(Token {
        kind: Kind::End,
        text: "",
        span: (text.len(), text.len()),
    });
    tokens
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || "_.:/+-".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_words_and_signs() {
        let text = "a<=2001:db8::/32 and(x=='b c')";
        let words: Vec<_> = tokens(text).iter().map(|token| token.text).collect();
        assert_eq!(
            words,
            [
                "a",
                "<=",
                "2001:db8::/32",
                "and",
                "(",
                "x",
                "==",
                "b c",
                ")",
                ""
            ]
        );
        assert_eq!(tokens("\"open")[0].kind, Kind::Strange);
        assert_eq!(
            tokens("ä # b")[1],
            Token {
                kind: Kind::Strange,
                text: "#",
                span: (3, 4)
            }
        );
    }
}

//! `--size-mix`: sizes that differ from message to message.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use linerate_model::Bytes;
use linerate_model::manner::{SIZES_MAX, Sizes};
use linerate_model::unit::ParseUnitError;

use crate::exit::{CmdResult, Failure};

/// What every refusal says next.
const FORMS: &str = "give list:64,1K,64K, uniform:64-1K, lognormal:4K,1.0 or file:PATH";
/// Longest file of sizes: sixteen characters for each size there may be.
const FILE_BYTES_MAX: u64 = 16 * SIZES_MAX as u64;

/// Reads `KIND:WHAT`.
pub(super) fn parse(text: &str) -> CmdResult<Sizes> {
    let bad = |why: String| Failure::usage(anyhow!("--size-mix {text}: {why}")).next(FORMS);
    let (kind, rest) = text
        .split_once(':')
        .ok_or_else(|| bad("no kind of mix".to_owned()))?;
    let size = |text: &str| -> CmdResult<Bytes> {
        text.parse()
            .map_err(|error: ParseUnitError| bad(error.to_string()))
    };
    match kind {
        "list" => {
            let bytes: CmdResult<Arc<[Bytes]>> = rest.split(',').map(size).collect();
            Ok(Sizes::List { bytes: bytes? })
        }
        "uniform" => {
            let (low, high) = rest
                .split_once('-')
                .ok_or_else(|| bad("no `-` between the least and the greatest size".to_owned()))?;
            Ok(Sizes::Uniform {
                low: size(low)?,
                high: size(high)?,
            })
        }
        "lognormal" => {
            let (median, sigma) = rest
                .split_once(',')
                .ok_or_else(|| bad("no `,` between the middle size and the width".to_owned()))?;
            let sigma: f64 = sigma
                .trim()
                .parse()
                .map_err(|_| bad(format!("`{sigma}` is not a number")))?;
            if !(0.01..=5.0).contains(&sigma) {
                return Err(bad(format!("the width is {sigma}, but must be 0.01 to 5")));
            }
            Ok(Sizes::LogNormal {
                median: size(median)?,
                sigma_percent: (sigma * 100.0).round() as u32,
            })
        }
        "file" => file(Path::new(rest)),
        other => Err(bad(format!("`{other}` is not a kind of mix"))),
    }
}

/// Reads sizes parted by blanks, commas or lines; what follows `#` on a line is passed over.
fn file(path: &Path) -> CmdResult<Sizes> {
    let read = || -> anyhow::Result<String> {
        let length = std::fs::metadata(path)?.len();
        if length > FILE_BYTES_MAX {
            return Err(anyhow!("it is longer than {FILE_BYTES_MAX} B"));
        }
        Ok(std::fs::read_to_string(path)?)
    };
    let text = read()
        .with_context(|| format!("cannot read the sizes in {}", path.display()))
        .map_err(Failure::usage)?;
    let mut bytes = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
        for word in words {
            bytes.push(word.parse().map_err(|error: ParseUnitError| {
                let path = path.display();
                Failure::usage(anyhow!("{path}, line {}: {error}", at + 1))
                    .next("give one size after another, such as 64 1K 64K")
            })?);
        }
    }
    Ok(Sizes::List {
        bytes: bytes.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_read() {
        let check = |text: &str, expected: Sizes| assert_eq!(parse(text).unwrap(), expected);
        let list = |bytes: &[u64]| Sizes::List {
            bytes: bytes.iter().copied().map(Bytes).collect(),
        };
        check("list:64,1K,64K", list(&[64, 1024, 65_536]));
        check(
            "uniform:64-1K",
            Sizes::Uniform {
                low: Bytes(64),
                high: Bytes(1024),
            },
        );
        check(
            "lognormal:4K,1.05",
            Sizes::LogNormal {
                median: Bytes(4096),
                sigma_percent: 105,
            },
        );
    }

    #[test]
    fn what_is_no_mix_says_the_forms() {
        for bad in [
            "64",
            "zipf:1",
            "uniform:64",
            "lognormal:4K",
            "lognormal:4K,0",
            "list:x",
            "list:",
        ] {
            let failure = parse(bad).unwrap_err();
            assert!(failure.to_string().contains(bad), "{failure}");
            assert_eq!(failure.next.as_deref(), Some(FORMS));
        }
    }
}

//! Words for a shell: commands that are shown can be pasted.

use std::borrow::Cow;
use std::path::Path;

/// What no shell changes, beside letters and digits.
const PLAIN: &str = "-_./:=,@%+";

/// Returns `word` as a shell reads it back, in quotes where it needs them.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || PLAIN.contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    // Within quotes nothing is special but the quote, which is put between two quoted parts.
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Returns a path in the same way.
pub fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        let check = |word: &str, expected: &str| {
            assert_eq!(quoted(word), expected);
            let echo = format!("printf %s {expected}");
            let said = std::process::Command::new("sh")
                .args(["-c", &echo])
                .output();
            assert_eq!(said.unwrap().stdout, word.as_bytes(), "{word}");
        };
        check("10.0.0.1:5201", "10.0.0.1:5201");
        check("list:64,1K", "list:64,1K");
        check("--budget=30s", "--budget=30s");
        check("cap space", "'cap space'");
        check("", "''");
        check("[::1]:5201", "'[::1]:5201'");
        check("it's $HOME", r"'it'\''s $HOME'");
        check("a;b\n*", "'a;b\n*'");
    }
}

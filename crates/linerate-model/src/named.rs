//! Choices that have words.

/// A choice that documents and flags name by a word.
pub trait Named: Copy + PartialEq + 'static {
    /// Every choice with its word, which is that of its serialised form.
    const NAMES: &'static [(&'static str, Self)];

    /// Returns its word.
    fn word(self) -> &'static str {
        let mut names = Self::NAMES.iter();
        names
            .find(|(_, one)| *one == self)
            .map_or("", |name| name.0)
    }

    /// Returns the choice that `word` names.
    fn named(word: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names.find(|name| name.0 == word).map(|name| name.1)
    }

    /// Returns the words.
    fn words() -> Vec<&'static str> {
        Self::NAMES.iter().map(|name| name.0).collect()
    }
}

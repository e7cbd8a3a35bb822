//! Words that are near others: what somebody probably meant.

/// Returns the word of `known` that `typed` is a slip of: a letter too many, too few, wrong or in the wrong
/// place for each three letters, or the same letters in another order.
pub fn nearest<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let most = (typed.chars().count() / 3).max(1);
    let distances = known
        .into_iter()
        .map(|word| (strsim::osa_distance(typed, word), word));
    let near = distances.filter(|&(distance, word)| {
        (1..=most).contains(&distance) || (distance == 2 && letters(typed) == letters(word))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Returns the command of `known` that `typed` is a slip or a short form of: `ls` of `list`.
pub fn nearest_name<'k>(typed: &str, known: &[&'k str]) -> Option<&'k str> {
    let is_short_for = |word: &&str| {
        let mut letters = word.chars();
        typed.len() >= 2
            && typed.chars().next() == word.chars().next()
            && typed.chars().all(|letter| letters.any(|one| one == letter))
    };
    let short = || {
        let mut all = known.iter().copied().filter(is_short_for);
        all.next().filter(|_| all.next().is_none())
    };
    nearest(typed, known.iter().copied()).or_else(short)
}

fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

/// Asks whether an unknown key of a file is one of those that there are, as the `error` of its reader lists them:
/// "unknown field `rte`, expected one of `rate`, `delay`".
pub fn of_key(error: &anyhow::Error) -> Option<String> {
    let message = format!("{error:#}");
    let (_, rest) = message.rsplit_once("unknown ")?;
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let typed = quoted.next()?;
    let near = nearest(typed, quoted)?;
    Some(format!("did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let words = ["run", "study", "serve", "latency", "socket-buffer"];
        let check = |typed: &str, expected: Option<&str>| {
            assert_eq!(nearest(typed, words), expected, "{typed}");
        };
        check("rnu", Some("run"));
        check("urn", Some("run"));
        check("latncy", Some("latency"));
        check("socket-bufer", Some("socket-buffer"));
        check("bench", None);
        check("run", None);
    }

    #[test]
    fn keys_are_found_in_what_a_reader_says() {
        let check = |message: &'static str, expected: Option<&str>| {
            assert_eq!(of_key(&anyhow::anyhow!(message)).as_deref(), expected);
        };
        check(
            "line 2: unknown field `rte`, expected one of `rate`, `delay`, `loss`",
            Some("did you mean `rate`?"),
        );
        check("unknown field `x`, expected `name`", None);
        check("cannot read it", None);
    }
}

//! The known word that is nearest to a misspelt one.

/// Words further away than this are never meant.
const DISTANCE_MAX: usize = 3;
/// Longer words are nobody's misspelling; comparing them would only cost time.
const WORD_CHARS_MAX: usize = 40;

/// The word of `known` that `word` is most likely meant to be, if any is near enough: a third of
/// its characters may differ, at least one and at most three; letter case and `-` for `_` count
/// for nothing.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.is_empty() || word.chars().count() > WORD_CHARS_MAX {
        return None;
    }
    let folded = fold(word);
    known
        .into_iter()
        .filter_map(|candidate| {
            let target = fold(candidate);
            let allowed = (folded.len().max(target.len()) / 3).clamp(1, DISTANCE_MAX);
            let distance =
                if target.len().abs_diff(folded.len()) > allowed { usize::MAX } else { distance(&folded, &target) };
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean 'per'?", if there is a word near enough.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|candidate| format!("did you mean '{candidate}'?"))
}

fn fold(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).map(|c| if c == '-' { '_' } else { c }).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other
/// (optimal string alignment).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, &a) in from.iter().enumerate() {
        let mut row = Vec::with_capacity(to.len() + 1);
        row.push(i + 1);
        let mut left = i + 1;
        for (j, (&b, pair)) in to.iter().zip(above.windows(2)).enumerate() {
            let [diagonal, up] = [pair.first(), pair.last()].map(|cell| cell.copied().unwrap_or(usize::MAX));
            let mut cell = (diagonal + usize::from(a != b)).min(up + 1).min(left + 1);
            let swapped = i > 0 && j > 0 && from.get(i - 1) == Some(&b) && to.get(j - 1) == Some(&a);
            if swapped {
                cell = cell.min(before.get(j - 1).map_or(usize::MAX, |cell| cell + 1));
            }
            row.push(cell);
            left = cell;
        }
        before = above;
        above = row;
    }
    above.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 6] = ["name", "per", "rate", "burst", "algorithm", "timezone"];

    #[test]
    fn a_slip_finds_its_word() {
        for (slip, word) in [
            ("pre", "per"),
            ("nam", "name"),
            ("Name", "name"),
            ("rates", "rate"),
            ("busrt", "burst"),
            ("algoritm", "algorithm"),
            ("time_zone", "timezone"),
            ("time-zone", "timezone"),
        ] {
            assert_eq!(nearest(slip, KEYS), Some(word), "{slip}");
        }
    }

    #[test]
    fn another_word_finds_none() {
        for word in ["", "x", "limit", "description", &"per".repeat(100)] {
            assert_eq!(nearest(word, KEYS), None, "{word}");
        }
    }

    #[test]
    fn distances() {
        let of = |a: &str, b: &str| distance(&fold(a), &fold(b));
        assert_eq!(of("", ""), 0);
        assert_eq!(of("abc", ""), 3);
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("ab", "ba"), 1);
        assert_eq!(of("Ünit", "ünit"), 0);
    }
}

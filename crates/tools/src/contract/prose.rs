//! Splits a description into sentences and words with byte ranges.

use std::collections::BTreeSet;
use std::ops::Range;

/// Maximum share of non-ASCII letters in an English text.
const MAX_FOREIGN_LETTERS: f64 = 0.2;

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 11] = ["approx", "cf", "dr", "e.g", "ex", "i.e", "incl", "min", "mr", "no", "vs"];

/// Frequent English function words.
const ENGLISH_WORDS: [&str; 36] = [
    "a", "about", "all", "an", "and", "any", "are", "at", "be", "by", "can", "each", "for", "from", "given", "has",
    "in", "is", "it", "its", "not", "of", "on", "or", "that", "the", "their", "them", "this", "to", "use", "user",
    "when", "which", "with", "you",
];

/// Frequent function words of German, Spanish, French, Italian, Portuguese and Dutch that are not English words.
const FOREIGN_WORDS: [&str; 80] = [
    "aan",
    "al",
    "als",
    "auf",
    "aus",
    "avec",
    "bei",
    "che",
    "com",
    "como",
    "con",
    "cuando",
    "dans",
    "das",
    "de",
    "del",
    "dell",
    "della",
    "dem",
    "den",
    "der",
    "des",
    "di",
    "die",
    "du",
    "een",
    "ein",
    "eine",
    "einem",
    "einen",
    "einer",
    "eines",
    "el",
    "em",
    "en",
    "es",
    "est",
    "et",
    "f\u{fc}r",
    "gibt",
    "het",
    "il",
    "ist",
    "la",
    "las",
    "le",
    "les",
    "lo",
    "los",
    "mit",
    "nach",
    "naar",
    "oder",
    "os",
    "ou",
    "para",
    "per",
    "por",
    "pour",
    "quand",
    "quando",
    "que",
    "quiere",
    "se",
    "si",
    "sich",
    "sur",
    "um",
    "uma",
    "un",
    "una",
    "und",
    "une",
    "utilisateur",
    "van",
    "voor",
    "wenn",
    "wird",
    "zu",
    "zum",
];

/// Verbs that look like adverbs.
const VERBS_LIKE_ADVERBS: [&str; 8] = ["apply", "comply", "fly", "imply", "multiply", "rely", "reply", "supply"];

/// A text split into sentences and words.
pub(super) struct Prose<'t> {
    pub(super) text: &'t str,
    pub(super) words: Vec<Word>,
    /// Word indices of each sentence.
    pub(super) sentences: Vec<Range<usize>>,
}

/// A word: letters and digits, with `_`, `-`, `'` and `.` inside.
#[derive(Debug)]
pub(super) struct Word {
    /// Lower case.
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

impl Word {
    /// Whether this is an adverb, such as "recursively".
    pub(super) fn is_adverb(&self) -> bool {
        self.text.ends_with("ly") && !VERBS_LIKE_ADVERBS.iter().any(|verb| self.text.ends_with(verb))
    }
}

impl<'t> Prose<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let words = split_words(text);
        let mut sentences = Vec::new();
        let mut start = 0;
        for at in 0..words.len() {
            let next = words.get(at + 1).map_or(text.len(), |next| next.span.start);
            if at + 1 == words.len() || ends_sentence(&words[at], &text[words[at].span.end..next]) {
                sentences.push(start..at + 1);
                start = at + 1;
            }
        }
        Self { text, words, sentences }
    }

    /// Returns the words of the first sentence.
    pub(super) fn first_sentence(&self) -> &[Word] {
        self.sentences.first().map_or(&[], |range| &self.words[range.clone()])
    }

    /// Returns the byte range from one word through another.
    pub(super) fn span(&self, from: usize, to: usize) -> Range<usize> {
        self.words[from].span.start..self.words[to].span.end
    }

    /// Whether the text looks English: few non-ASCII letters, and at least as many English as foreign function words.
    pub(super) fn is_english(&self) -> bool {
        let letters = self.text.chars().filter(|letter| letter.is_alphabetic()).count();
        let foreign = self.text.chars().filter(|letter| letter.is_alphabetic() && !letter.is_ascii()).count();
        #[expect(clippy::cast_precision_loss, reason = "text lengths are far below 2^52")]
        let is_latin = letters > 0 && foreign as f64 <= letters as f64 * MAX_FOREIGN_LETTERS;
        let distinct: BTreeSet<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        let count = |list: &[&str]| distinct.iter().filter(|word| list.contains(word)).count();
        let (english, foreign) = (count(&ENGLISH_WORDS), count(&FOREIGN_WORDS));
        is_latin && foreign <= english
    }
}

fn split_words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut letters = text.char_indices().peekable();
    let mut start = None;
    while let Some((at, letter)) = letters.next() {
        let has_next = letters.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        let is_inside = match letter {
            _ if letter.is_alphanumeric() => true,
            '_' => true,
            '-' | '\'' | '’' | '.' => start.is_some() && has_next,
            _ => false,
        };
        match (start, is_inside) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                push(&mut words, text, from..at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        push(&mut words, text, from..text.len());
    }
    words
}

fn push(words: &mut Vec<Word>, text: &str, span: Range<usize>) {
    words.push(Word { text: text[span.clone()].to_lowercase(), span });
}

/// Whether the gap after a word ends its sentence: a full stop or similar, an empty line, or a new list item.
fn ends_sentence(word: &Word, gap: &str) -> bool {
    if gap.contains(['。', '！', '？']) {
        return true;
    }
    let stop = gap.find(['.', '!', '?']).filter(|&at| {
        let following = &gap[at + 1..];
        following.is_empty() || following.starts_with(|next: char| next.is_whitespace() || "\"')]*`”’".contains(next))
    });
    if let Some(at) = stop {
        let is_abbreviation = at == 0 && gap.starts_with('.') && ABBREVIATIONS.contains(&word.text.as_str());
        return !is_abbreviation;
    }
    let mut lines = gap.split('\n').skip(1);
    lines.any(|line| {
        let line = line.trim();
        line.is_empty() && gap.matches('\n').count() > 1 || line.starts_with(['-', '*', '•', '#'])
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let prose = Prose::of(text);
        prose.sentences.iter().map(|range| &text[prose.span(range.start, range.end - 1)]).collect()
    }

    #[test]
    fn word_lists_are_sorted() {
        assert!(ENGLISH_WORDS.is_sorted() && ABBREVIATIONS.is_sorted());
    }

    #[rstest]
    #[case("Fetches it. Use when asked.", &["Fetches it", "Use when asked"])]
    #[case("Reads e.g. v1.2 of a file.txt! Fast", &["Reads e.g. v1.2 of a file.txt", "Fast"])]
    #[case("Fetches\n  the weather\n\nArgs:\n - city", &["Fetches\n  the weather", "Args", "city"])]
    #[case("It's a read-only get_weather(\"x.\") call", &["It's a read-only get_weather(\"x", "call"])]
    #[case("获取天气。当用户询问时使用。", &["获取天气", "当用户询问时使用"])]
    #[case("", &[])]
    #[case("...", &[])]
    fn splits_sentences(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(sentences(text), expected);
    }

    #[rstest]
    #[case::english("Fetches the weather of a city.", true)]
    #[case::terse("Fetch weather", true)]
    #[case::names("Books a table at La Casa de Papel in the old town.", true)]
    #[case::chinese("获取某城市的当前天气 (JSON)。", false)]
    #[case::russian("Получает погоду.", false)]
    #[case::german("Ruft das aktuelle Wetter einer Stadt ab.", false)]
    #[case::spanish("Obtiene el clima de una ciudad.", false)]
    #[case::french("Donne la météo d'une ville pour les jours à venir.", false)]
    #[case::no_letters("123 456", false)]
    fn detects_english(#[case] text: &str, #[case] english: bool) {
        assert_eq!(Prose::of(text).is_english(), english);
    }
}

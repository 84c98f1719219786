//! What somebody asks of a tool, in the tool's own words: its trigger phrases, and its description.

use std::collections::BTreeSet;

use karat_core::contract;
use karat_core::registry::Tool;
use karat_core::similarity;

use super::lexicon::{
    DOING_VERBS, EMPTY_WORDS, FETCHING_VERBS, FOREIGN_WORDS, OTHER_VERBS, PEOPLE, READING_VERBS, SENTENCE_STARTS,
    WISHES,
};

/// The most words of what is asked; what is longer is cut where a thought ends.
const MOST_WORDS: usize = 14;
const MOST_LETTERS: usize = 110;
/// Shorter words stand in other words by chance.
const FEWEST_LETTERS: usize = 4;

/// What is known of how people speak of a tool.
pub(super) struct Speech {
    /// What is asked, in any form: "what's the weather in Paris", "coming days". Never empty.
    errands: Vec<String>,
    /// How many of them, the first ones, people have said.
    said: usize,
    /// What is asked, as a thing that a sentence can be about: "coming days", "booking a table". Never empty.
    things: Vec<String>,
    /// What it is about: "weather".
    pub(super) topic: String,
    /// Two to four words that an answer about it might hold, or none.
    pub(super) synonyms: Vec<String>,
}

impl Speech {
    pub(super) fn of(tool: &Tool, triggers: &[String]) -> Self {
        let condition = contract::condition(tool).map(clean).and_then(|condition| wish(&condition));
        let described = condition.into_iter().flat_map(|wish| parts(&wish)).chain(deed(tool)).map(|text| cut(&text));
        let things = distinct(described.chain([named_thing(&tool.name)]));
        let phrases = distinct(triggers.iter().map(|phrase| within(&cut(&clean(phrase)))));
        let said = phrases.len();
        let errands = distinct(phrases.into_iter().chain(things.iter().cloned()));
        Self { errands, said, things, topic: topic(&tool.name), synonyms: synonyms(tool, triggers) }
    }

    /// Returns one of the ways to ask.
    pub(super) fn errand(&self, turn: usize) -> &str {
        self.errands.get(turn % self.errands.len().max(1)).map_or(self.topic.as_str(), String::as_str)
    }

    /// Returns what people have said where that is known, or else what is asked as a thing.
    pub(super) fn request(&self, turn: usize) -> &str {
        if self.said == 0 { self.thing(turn) } else { self.errand(turn % self.said) }
    }

    /// Returns the same as a thing that a sentence can be about: what people have said is then a quotation.
    pub(super) fn quotation(&self, turn: usize) -> String {
        let request = self.request(turn);
        if self.said == 0 || request.contains('"') { self.thing(turn).to_owned() } else { format!("\"{request}\"") }
    }

    /// Returns one of the ways to name what is asked.
    pub(super) fn thing(&self, turn: usize) -> &str {
        self.things.get(turn % self.things.len().max(1)).map_or(self.topic.as_str(), String::as_str)
    }
}

/// Returns a message without what it says of some tools.
pub(super) fn without<'s>(message: &str, speeches: impl IntoIterator<Item = &'s Speech>) -> String {
    let mut texts: Vec<&String> = speeches.into_iter().flat_map(|speech| &speech.errands).collect();
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    texts.into_iter().fold(message.to_owned(), |message, text| message.replace(text.as_str(), ""))
}

fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| text.chars().any(char::is_alphanumeric) && seen.insert(text.to_lowercase())).collect()
}

/// Takes out what no person types: control characters, line breaks, marks of tokens.
pub(super) fn clean(text: &str) -> String {
    let is_shown = |letter: char| !letter.is_control() && !"{}`*\u{feff}\u{200b}\u{202e}".contains(letter);
    let shown: String = text
        .chars()
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .filter(|letter| is_shown(*letter))
        .collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what a tool is about, by its name.
pub(super) fn topic(name: &str) -> String {
    let mut words = name_words(name);
    let is_verb = |word: &String| READING_VERBS.contains(&word.as_str()) || DOING_VERBS.contains(&word.as_str());
    if words.len() > 1 && is_verb(&words[0]) {
        words.remove(0);
    }
    if words.is_empty() { "this tool".to_owned() } else { words.join(" ") }
}

/// Returns what is asked of a tool, by its name: "the weather", "creating the ticket".
fn named_thing(name: &str) -> String {
    match name_words(name).split_first() {
        Some((verb, rest)) if !rest.is_empty() && DOING_VERBS.contains(&verb.as_str()) => {
            format!("{} the {}", doing(verb), rest.join(" "))
        }
        _ => format!("the {}", topic(name)),
    }
}

fn name_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut after_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && after_small {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        after_small = letter.is_lowercase() || letter.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns a sentence as it stands within another: without its end, and begun in lower case where that is no name.
fn within(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches(['.', '!', '?', ';', ':', ',', ' ']);
    let first = sentence.split([' ', '\u{2019}']).next().unwrap_or_default();
    if SENTENCE_STARTS.contains(&first.to_lowercase().as_str()) { small_start(sentence) } else { sentence.to_owned() }
}

fn small_start(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Returns what is wanted, by a condition such as "the user asks about coming days".
fn wish(condition: &str) -> Option<String> {
    let small = condition.to_lowercase();
    // Where lower case has another length, places would not fit.
    let condition = if small.len() == condition.len() { condition } else { small.as_str() };
    let person = PEOPLE.iter().find(|person| small.starts_with(**person))?;
    let (small, rest) = (&small[person.len()..], condition.get(person.len()..)?);
    let wish = WISHES.iter().find(|wish| small.starts_with(**wish))?;
    let rest = rest.get(wish.len()..)?;
    let own = |word: &str| match word {
        "their" | "his" | "her" => "my".to_owned(),
        "they" => "I".to_owned(),
        "them" => "me".to_owned(),
        _ => word.to_owned(),
    };
    let words: Vec<String> = rest.split(' ').map(own).collect();
    let rest = within(&words.join(" "));
    let is_deed = wish.ends_with(" to ");
    Some(if is_deed { done(&rest) } else { rest })
}

/// Returns a wish as a whole where it is one, and its parts where it names several things.
fn parts(wish: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut is_one = !wish.contains([',', ';']);
    for piece in wish.split([',', ';']).flat_map(|piece| piece.split(" or ")) {
        let piece = piece.trim().trim_start_matches("or ").trim_start_matches("and ").trim();
        // "asks about the weather, or wants a summary"
        let wanted = WISHES.iter().find_map(|wish| piece.strip_prefix(wish).map(|rest| (wish, rest)));
        let part = match wanted {
            Some((wish, rest)) if wish.ends_with(" to ") => done(rest),
            Some((_, rest)) => rest.to_owned(),
            None => piece.to_owned(),
        };
        is_one &= wanted.is_none();
        if part.split(' ').count() > 1 {
            parts.push(part);
        }
    }
    let whole = is_one.then(|| wish.to_owned()).filter(|wish| wish.split(' ').count() <= MOST_WORDS);
    whole.into_iter().chain(parts).collect()
}

/// Returns what a tool does as a thing: "Fetches the weather" is "the weather".
fn deed(tool: &Tool) -> Option<String> {
    let action = clean(contract::action(tool)?);
    let (verb, rest) = action.split_once(' ')?;
    if !verb.chars().all(|letter| letter.is_ascii_alphabetic()) {
        return Some(action);
    }
    let first = verb.to_lowercase();
    let verb = plain_verb(&first);
    let verbs = DOING_VERBS.iter().chain(&READING_VERBS).chain(&FETCHING_VERBS).chain(&OTHER_VERBS);
    // "Invoices" is "invoice" too, but not what is done: of what is no known verb no form is made up.
    if verbs.into_iter().any(|known| *known == verb) {
        return Some(done(&format!("{verb} {rest}")));
    }
    let next = rest.split(' ').next().unwrap_or_default();
    let is_deed = first.ends_with('s') && ["a", "all", "an", "one", "the", "their", "your"].contains(&next);
    (!is_deed)
        .then(|| if action.chars().nth(1).is_some_and(char::is_lowercase) { small_start(&action) } else { action })
}

/// Turns an order into a thing: "book a table" is "booking a table", "fetch the weather" is "the weather".
fn done(order: &str) -> String {
    let Some((verb, rest)) = order.split_once(' ') else {
        return doing(order);
    };
    if FETCHING_VERBS.contains(&verb) {
        return rest.to_owned();
    }
    match rest.strip_prefix("up ") {
        Some(rest) if verb == "look" => rest.to_owned(),
        _ => format!("{} {rest}", doing(verb)),
    }
}

/// Returns the form of a verb that is a thing: "booking", "creating", "running".
fn doing(verb: &str) -> String {
    let letters: Vec<char> = verb.chars().collect();
    let is_vowel = |letter: &char| "aeiou".contains(*letter);
    match letters.as_slice() {
        _ if verb.ends_with("ing") => verb.to_owned(),
        [.., 'i', 'e'] => format!("{}ying", verb.trim_end_matches("ie")),
        [.., before, 'e'] if !"eoy".contains(*before) => format!("{}ing", &verb[..verb.len() - 1]),
        // A short verb doubles its last sound: run, set, stop.
        [start @ .., vowel, last]
            if is_vowel(vowel)
                && !is_vowel(last)
                && !"wxy".contains(*last)
                && !start.is_empty()
                && start.iter().all(|letter| !is_vowel(letter)) =>
        {
            format!("{verb}{last}ing")
        }
        _ => format!("{verb}ing"),
    }
}

fn plain_verb(verb: &str) -> String {
    let es = ["sses", "shes", "ches", "xes", "zzes", "oes"].iter().any(|ending| verb.ends_with(ending));
    match (verb.strip_suffix("ies"), verb.strip_suffix("es"), verb.strip_suffix('s')) {
        (Some(stem), _, _) if stem.len() > 1 => format!("{stem}y"),
        (_, Some(stem), _) if es => stem.to_owned(),
        (_, _, Some(stem)) if !stem.ends_with('s') && stem.len() > 2 => stem.to_owned(),
        _ => verb.to_owned(),
    }
}

/// Cuts what is too long for a sentence that asks for several things.
fn cut(text: &str) -> String {
    let is_short = |text: &str| text.split(' ').count() <= MOST_WORDS && text.chars().count() <= MOST_LETTERS;
    if is_short(text) {
        return text.to_owned();
    }
    let mut ends =
        text.match_indices([',', ';', ':', '(', '\u{2014}', '.', '?', '!']).map(|(at, _)| text[..at].trim_end());
    let thought = ends.rfind(|part| part.split(' ').count() > 2 && is_short(part));
    if let Some(thought) = thought {
        return thought.to_owned();
    }
    let mut words: Vec<&str> = text.split(' ').take(MOST_WORDS).collect();
    // No sentence ends in "of the".
    while words.len() > 3 && words.last().is_some_and(|word| similarity::words(word).is_empty()) {
        words.pop();
    }
    let short: String = words.join(" ").chars().take(MOST_LETTERS).collect();
    short.trim_end().to_owned()
}

/// Returns words that an answer about the tool's subject might hold, none of them a part of another.
fn synonyms(tool: &Tool, triggers: &[String]) -> Vec<String> {
    const MOST: usize = 4;
    let topic = topic(&tool.name);
    let action = contract::action(tool).map(clean).unwrap_or_default();
    // The first word of what a tool does is a verb, which no answer repeats.
    let objects = action.split_once(' ').map_or("", |(_, rest)| rest);
    let wish = contract::condition(tool).map(clean).and_then(|condition| wish(&condition));
    let wish = wish.map(|wish| parts(&wish).join(" ")).unwrap_or_default();
    // What is special in a phrase is no word for what it is about.
    let is_common = |word: &&str| word.starts_with(char::is_lowercase);
    let said: Vec<String> = triggers.iter().map(|phrase| clean(phrase)).collect();
    let said = said.iter().flat_map(|phrase| phrase.split(' ')).filter(is_common).collect::<Vec<_>>().join(" ");
    let mut synonyms: Vec<String> = Vec::new();
    // "refunded", "deleting": an answer says what was done in some form of the verb.
    let verb = name_words(&tool.name).into_iter().next().filter(|verb| DOING_VERBS.contains(&verb.as_str()));
    let stem = verb.map(|verb| verb.strip_suffix('e').unwrap_or(&verb).to_owned());
    synonyms.extend(stem.filter(|stem| stem.len() >= FEWEST_LETTERS && stem != "creat" && stem != "updat"));
    for piece in [topic.as_str(), objects, &wish, &said].into_iter().flat_map(|text| text.split(' ')) {
        for word in similarity::words(piece) {
            let has_sense = word.chars().count() >= FEWEST_LETTERS
                && word.chars().all(char::is_alphabetic)
                && !EMPTY_WORDS.contains(&word.as_str())
                && !FOREIGN_WORDS.contains(&word.as_str())
                && !READING_VERBS.contains(&word.as_str());
            let word = as_spelled(piece, word);
            let is_apart = |known: &String| !known.contains(&word) && !word.contains(known.as_str());
            if has_sense && synonyms.len() < MOST && synonyms.iter().all(is_apart) {
                synonyms.push(word);
            }
        }
    }
    if synonyms.len() < 2 { Vec::new() } else { synonyms }
}

/// Returns a word as its text spells it: "cities" is no "city" to who compares letters, and "HTTP" no "http".
fn as_spelled(piece: &str, word: String) -> String {
    let bare = piece.trim_matches(|letter: char| !letter.is_alphanumeric());
    let bare = bare.strip_suffix("'s").unwrap_or(bare);
    if !bare.chars().all(char::is_alphabetic) || similarity::words(bare).len() != 1 {
        return word;
    }
    let small = bare.to_lowercase();
    if bare.chars().all(char::is_uppercase) {
        bare.to_owned()
    } else if small.starts_with(&word) {
        // The beginning stands in the plural too.
        word
    } else {
        small
    }
}

/// Returns what is special in a phrase: names, numbers and quotations, which other words must not lose.
pub(super) fn particulars(phrase: &str) -> Vec<String> {
    let phrase = clean(phrase);
    let mut found: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut runs = false;
    for (at, word) in phrase.split(' ').enumerate() {
        let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let bare = bare.strip_suffix("'s").unwrap_or(bare);
        let is_name = at > 0 && bare.starts_with(char::is_uppercase) && bare != "I" && !bare.starts_with("I'");
        let is_special = is_name || bare.starts_with(|letter: char| letter.is_ascii_digit());
        if is_special
            && runs
            && let Some(last) = found.last_mut()
        {
            last.push(' ');
            last.push_str(bare);
        } else if is_special && seen.insert(bare.to_owned()) {
            found.push(bare.to_owned());
        }
        runs = is_special && word.ends_with(bare);
    }
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool { name: name.to_owned(), description: Some(description.to_owned()).into(), ..Tool::default() }
    }

    #[rstest]
    #[case("get_weather", "weather", "the weather")]
    #[case("getWeatherForecast", "weather forecast", "the weather forecast")]
    #[case("create-ticket", "ticket", "creating the ticket")]
    #[case("search", "search", "the search")]
    #[case("portfolio_summary", "portfolio summary", "the portfolio summary")]
    #[case("__", "this tool", "the this tool")]
    fn names_are_read(#[case] name: &str, #[case] about: &str, #[case] thing: &str) {
        assert_eq!((topic(name).as_str(), named_thing(name).as_str()), (about, thing));
    }

    #[rstest]
    #[case("Fetches the weather of a city. Use when the user asks about current conditions.", &["current conditions", "the weather of a city"])]
    #[case("Books a table. Use when the user wants to reserve a table, or asks for a seat outside.", &["reserving a table", "a seat outside", "booking a table"])]
    #[case("Looks up their orders. Use when a customer needs their order status.", &["my order status", "their orders"])]
    #[case("Runs a query. Use when someone wants to know whether it works.", &["whether it works", "running a query"])]
    #[case("Applies a patch. Use for hot fixes.", &["applying a patch"])]
    #[case("Invoices of a customer. Use for bills.", &["invoices of a customer"])]
    #[case("Current weather data. Use for now.", &["current weather data"])]
    #[case("Frobnicates the widget. Use for widgets.", &[])]
    #[case("获取天气。当用户询问时使用。", &[])]
    fn descriptions_are_read(#[case] description: &str, #[case] expected: &[&str]) {
        let speech = Speech::of(&tool("x", description), &[]);
        let described: Vec<&str> = speech.things.iter().map(String::as_str).filter(|thing| *thing != "the x").collect();
        assert_eq!(described, expected);
    }

    #[rstest]
    #[case("What's the weather in New York today?", &["New York"])]
    #[case("Cancel order 4711, please", &["4711"])]
    #[case("Paris or London's hotels?", &["London"])]
    #[case("what am I doing", &[])]
    fn what_is_special_is_kept(#[case] phrase: &str, #[case] expected: &[&str]) {
        assert_eq!(particulars(phrase), expected);
    }

    #[test]
    fn phrases_begin_small_within_a_sentence_unless_they_are_names() {
        assert_eq!(within("What's new?"), "what's new");
        assert_eq!(within("Paris weather!"), "Paris weather");
        assert_eq!(within("I want out"), "I want out");
    }

    #[test]
    fn synonyms_are_no_parts_of_each_other_and_no_names() {
        let weather = tool("get_weather", "Fetches the weatherly conditions of cities. Use when asked.");
        assert_eq!(
            synonyms(&weather, &["Is it windy in Paris?".to_owned()]),
            ["weather", "condition", "cities", "windy"]
        );
        assert_eq!(synonyms(&tool("get_weather", ""), &[]), [""; 0]);
        let refund = tool("delete_payment", "Deletes a paid tax over HTTP. Use when asked.");
        assert_eq!(synonyms(&refund, &[]), ["delet", "payment", "paid", "HTTP"]);
        let spanish = tool("get_vuelos", "Busca vuelos para el usuario cuando pregunta.");
        assert_eq!(synonyms(&spanish, &[]), ["vuelo", "pregunta"]);
    }
}

//! Compiles JSON Schemas, with ECMAScript patterns and a limit on their steps.

use jsonschema::paths::Location;
use jsonschema::{Keyword, PatternOptions, ValidationError, Validator};
use karat_pattern::Pattern;
use serde_json::{Map, Value, json};

/// Maximum number of backtracking steps of a pattern; beyond it, a string does not match.
const BACKTRACK_LIMIT: usize = 100_000;

/// The keywords of JSON Schema that apply to objects, except those that start with `$`.
const KEYWORDS: [&str; 35] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "items",
    "prefixItems",
    "contains",
    "format",
    "pattern",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "id",
];

/// Compiles a JSON Schema without fetching remote references.
pub fn compile_schema(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .offline()
        .with_pattern_options(pattern_options())
        .with_keyword("pattern", pattern_keyword)
        .build(schema)
        .map_err(|error| error.to_string())
}

/// Compiles the schema of a tool's arguments. Rejects a schema without any keyword, which would accept everything.
pub fn compile_tool_schema(schema: &Value) -> Result<Validator, String> {
    let is_keyword = |key: &String| key.starts_with('$') || KEYWORDS.contains(&key.as_str());
    if schema.as_object().is_some_and(|schema| !schema.is_empty() && !schema.keys().any(is_keyword)) {
        return Err("it has no keyword of JSON Schema, so it would accept all arguments".to_owned());
    }
    compile_schema(schema)
}

fn pattern_options() -> PatternOptions<jsonschema::FancyRegex> {
    PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT)
}

/// Syntax with a different meaning without the flag `u`.
const UNICODE_SYNTAX: [&str; 3] = ["\\p{", "\\P{", "\\u{"];

/// The keyword `pattern`, which is an ECMAScript regular expression with the flag `u`.
struct PatternKeyword {
    source: String,
    /// Compiled without the flag. Equivalent for other syntax and for strings of the basic plane.
    plain: Option<Pattern>,
    /// Compiled with the flag; `None` if the pattern is invalid with it.
    unicode: Option<Validator>,
}

impl PatternKeyword {
    fn matches(&self, text: &str) -> bool {
        let is_basic = |text: &str| text.chars().all(|character| u32::from(character) <= 0xffff);
        if let Some(unicode) = &self.unicode
            && (self.plain.is_none() || !is_basic(text) || !is_basic(&self.source))
        {
            return unicode.is_valid(&json!(text));
        }
        self.plain.as_ref().is_some_and(|plain| plain.is_match(text).unwrap_or(false))
    }
}

impl<'i> Keyword<'i> for PatternKeyword {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("{instance} does not match \"{}\"", self.source)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance.as_str().is_none_or(|text| self.matches(text))
    }
}

fn pattern_keyword<'a>(
    _: &'a Map<String, Value>,
    value: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let source = value.as_str().unwrap_or_default().to_owned();
    let options = jsonschema::options().offline().with_pattern_options(pattern_options());
    let unicode = options.build(&json!({"pattern": value})).ok();
    let plain = match Pattern::compile(&source) {
        Err(error) if unicode.is_none() => {
            let message = format!("\"{source}\" is not a valid regular expression: {error}");
            return Err(ValidationError::custom(message));
        }
        compiled => {
            let has_other_meaning = UNICODE_SYNTAX.iter().any(|syntax| source.contains(syntax));
            compiled.ok().filter(|_| unicode.is_none() || !has_other_meaning)
        }
    };
    Ok(Box::new(PatternKeyword { source, plain, unicode }))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r"^\d+$", "18", true)]
    #[case(r"^\d+$", "١٨", false)]
    #[case(r"^a$", "a\n", false)]
    #[case(r"^a.b$", "a\rb", false)]
    #[case(r"^a.b$", "a\u{2028}b", false)]
    #[case(r"\bé", "é", false)]
    #[case(r"^[^]$", "\n", true)]
    #[case(r"^a{,2}$", "a{,2}", true)]
    #[case(r"(?<=x)a", "xa", true)]
    #[case(r"^\p{L}+$", "été", true)]
    #[case(r"^.$", "😀", true)]
    #[case("^🐲*$", "🐲🐲", true)]
    fn patterns_are_ecmascript(#[case] pattern: &str, #[case] text: &str, #[case] expected: bool) {
        let schema = compile_schema(&json!({"type": "string", "pattern": pattern})).expect("a schema");
        assert_eq!(schema.is_valid(&json!(text)), expected);
        let nested = compile_schema(&json!({"properties": {"a": {"pattern": pattern}}})).expect("a schema");
        assert_eq!(nested.is_valid(&json!({"a": text})), expected);
        assert!(nested.is_valid(&json!({"a": 1})));
    }

    #[rstest]
    #[case(json!({}), true)]
    #[case(json!(true), true)]
    #[case(json!({"$ref": "#"}), true)]
    #[case(json!({"description": "no arguments", "x-order": 1}), true)]
    #[case(json!({"city": "where to look"}), false)]
    #[case(json!({"city": {"kind": "string"}}), false)]
    #[case(json!({"type": "dict"}), false)]
    fn schemas_of_tools_have_keywords(#[case] schema: Value, #[case] expected: bool) {
        assert_eq!(compile_tool_schema(&schema).is_ok(), expected);
    }

    #[test]
    fn names_the_pattern() {
        let schema = compile_schema(&json!({"pattern": "^a"})).expect("a schema");
        let value = json!("b");
        let error = schema.validate(&value).expect_err("no match");
        assert_eq!(error.to_string(), "\"b\" does not match \"^a\"");
        assert!(compile_schema(&json!({"pattern": "("})).is_err());
    }
}

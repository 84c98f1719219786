//! Attributes that write a list by numbers in their names: `gen_ai.prompt.0.role`, `llm.input_messages.1.message.role`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// How many names deep such attributes are read.
const DEPTH: usize = 12;

#[derive(Debug)]
enum Node {
    Leaf(Value),
    Branch(BTreeMap<Key, Node>),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Index(u64),
    Name(String),
}

/// Returns the list that all attributes under a beginning write, in the order of their numbers.
pub(super) fn list(attributes: &Map<String, Value>, beginning: &str) -> Vec<Value> {
    let mut root = BTreeMap::new();
    for (name, value) in attributes {
        let Some(rest) = name.strip_prefix(beginning).and_then(|rest| rest.strip_prefix('.')) else { continue };
        if rest.starts_with(|first: char| first.is_ascii_digit()) {
            insert(&mut root, rest, value, DEPTH);
        }
    }
    root.into_iter().filter(|(key, _)| matches!(key, Key::Index(_))).map(|(_, node)| node.into_value()).collect()
}

fn insert(branch: &mut BTreeMap<Key, Node>, path: &str, value: &Value, depth: usize) {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) if depth > 0 => (name, Some(rest)),
        _ => (path, None),
    };
    let key = name.parse().map_or_else(|_| Key::Name(name.to_owned()), Key::Index);
    match rest {
        None => {
            branch.entry(key).or_insert_with(|| Node::Leaf(value.clone()));
        }
        Some(rest) => {
            let node = branch.entry(key).or_insert_with(|| Node::Branch(BTreeMap::new()));
            if matches!(node, Node::Leaf(_)) {
                *node = Node::Branch(BTreeMap::new());
            }
            if let Node::Branch(inner) = node {
                insert(inner, rest, value, depth - 1);
            }
        }
    }
}

impl Node {
    fn into_value(self) -> Value {
        match self {
            Node::Leaf(value) => value,
            Node::Branch(inner) if inner.keys().all(|key| matches!(key, Key::Index(_))) => {
                Value::Array(inner.into_values().map(Node::into_value).collect())
            }
            Node::Branch(inner) => Value::Object(
                inner
                    .into_iter()
                    .map(|(key, node)| {
                        let name = match key {
                            Key::Index(index) => index.to_string(),
                            Key::Name(name) => name,
                        };
                        (name, node.into_value())
                    })
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_in_names_make_a_list_in_their_order() {
        let Value::Object(attributes) = json!({
            "p.10.role": "c", "p.2.tool_calls.1.name": "y", "p.2.tool_calls.0.name": "x", "p.2.role": "b", "p.0": "a",
            "p.x": "not a number", "px.0": "another beginning",
        }) else {
            panic!("an object")
        };
        let expected = json!(["a", {"role": "b", "tool_calls": [{"name": "x"}, {"name": "y"}]}, {"role": "c"}]);
        assert_eq!(Value::Array(list(&attributes, "p")), expected);
    }

    #[test]
    fn a_name_of_many_dots_is_no_danger() {
        let mut attributes = Map::new();
        attributes.insert(format!("p.0{}", ".a".repeat(100_000)), json!(1));
        assert_eq!(list(&attributes, "p").len(), 1);
    }
}

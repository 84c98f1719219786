//! Lists encoded as indices in attribute names: `gen_ai.prompt.0.role`, `llm.input_messages.1.message.role`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Names with more levels are not split further.
const MAX_DEPTH: usize = 12;

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

/// Returns the list encoded by the attributes with this prefix, ordered by index.
pub(super) fn list(attributes: &Map<String, Value>, prefix: &str) -> Vec<Value> {
    let mut root = BTreeMap::new();
    for (name, value) in attributes {
        let Some(rest) = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')) else { continue };
        if rest.starts_with(|first: char| first.is_ascii_digit()) {
            insert(&mut root, rest, value, MAX_DEPTH);
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
    fn builds_a_list_ordered_by_index() {
        let Value::Object(attributes) = json!({
            "p.10.role": "c", "p.2.tool_calls.1.name": "y", "p.2.tool_calls.0.name": "x", "p.2.role": "b", "p.0": "a",
            "p.x": "not a number", "px.0": "another prefix",
        }) else {
            panic!("an object")
        };
        let expected = json!(["a", {"role": "b", "tool_calls": [{"name": "x"}, {"name": "y"}]}, {"role": "c"}]);
        assert_eq!(Value::Array(list(&attributes, "p")), expected);
    }

    #[test]
    fn limits_the_depth_of_names() {
        let mut attributes = Map::new();
        attributes.insert(format!("p.0{}", ".a".repeat(100_000)), json!(1));
        assert_eq!(list(&attributes, "p").len(), 1);
    }
}

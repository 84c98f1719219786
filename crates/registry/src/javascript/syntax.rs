//! What of a source file matters for its tools, freed from the parser: exports, bindings, expressions.
//!
//! The parser's tree borrows from an arena and knows far more than is needed. These types own what they hold, so that
//! files can be parsed on other threads and values can point into them.

use std::path::PathBuf;
use std::sync::Arc;

use super::lines::LineTable;
use super::text::Text;

/// A file that could be parsed.
#[derive(Debug)]
pub(super) struct Module {
    pub path: PathBuf,
    /// The file's name as a person would write it.
    pub shown: String,
    pub lines: LineTable,
    pub bindings: Vec<Binding>,
    /// In the order of the source.
    pub exports: Vec<Export>,
    /// What `require` returns for the file, where it says so itself.
    pub commonjs: Option<Expr>,
    /// Calls like `server.registerTool(…)`, wherever they stand.
    pub registrations: Vec<Registration>,
    /// What handlers of `tools/list` answer.
    pub listings: Vec<Expr>,
    /// Writes to fields of tools that do not say which tool.
    pub writes: Vec<LooseWrite>,
    /// Everything that the file imports or passes on.
    pub imports: Vec<Specifier>,
    /// Modules that may register tools: imported for their effects, or for a function that is called to do so.
    pub followed: Vec<Specifier>,
}

/// A call that gives a server a tool.
#[derive(Debug)]
pub(super) struct Registration {
    pub call: Expr,
    /// Where the tool is changed or taken away through what the call returned.
    pub changed: Option<u32>,
}

/// A write to a field of some tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LooseWrite {
    /// The field; none where it may be any.
    pub key: Option<String>,
    pub offset: u32,
    /// The tool may come from a module that imports this one.
    pub outward: bool,
}

/// The text between the quotes of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Specifier {
    pub text: String,
    pub offset: u32,
}

#[derive(Debug)]
pub(super) enum Export {
    Local {
        name: String,
        value: Expr,
    },
    From {
        name: String,
        imported: Imported,
        specifier: Specifier,
    },
    All {
        specifier: Specifier,
    },
    /// A type, which is nothing at run time.
    Type {
        name: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Imported {
    Name(String),
    /// `* as`, the whole module.
    Namespace,
}

/// Stands for a variable of a module, in whatever scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BindingId(pub u32);

#[derive(Debug)]
pub(super) struct Binding {
    pub name: String,
    pub declared: Declared,
    /// Where a `var` is declared: before that it is undefined.
    pub hoisted: Option<u32>,
    /// Where it gets another value than the one it was declared with.
    pub reassigned: Option<u32>,
    /// Where something inside its value is changed later.
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The property, where it is a single one whose name is known.
    pub key: Option<String>,
    pub offset: u32,
}

#[derive(Debug)]
pub(super) enum Declared {
    Value(Expr),
    Import {
        imported: Imported,
        specifier: Specifier,
    },
    Enum(Vec<EnumMember>, u32),
    /// A member of an enum, named inside the enum.
    EnumMember(BindingId, String),
    /// Says what it is: a parameter, a loop's variable.
    Opaque(&'static str, u32),
}

#[derive(Debug)]
pub(super) struct EnumMember {
    /// None where the name is computed by more than a literal.
    pub name: Option<Text>,
    pub initializer: Option<Expr>,
    pub offset: u32,
}

#[derive(Debug)]
pub(super) struct Expr {
    pub kind: ExprKind,
    /// Where it begins in the file, in bytes.
    pub offset: u32,
}

#[derive(Debug)]
pub(super) enum ExprKind {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    BigInt,
    Text(Text),
    Template {
        texts: Vec<Text>,
        holes: Vec<Expr>,
    },
    Regex {
        source: String,
    },
    Name(BindingId),
    Global(String),
    Array(Vec<Item>),
    Object(Vec<Property>),
    Member {
        object: Box<Expr>,
        key: Box<Expr>,
        optional: bool,
    },
    Call(Box<Call>),
    Add(Box<Expr>, Box<Expr>),
    Minus(Box<Expr>),
    Function(Arc<Function>),
    Class,
    /// Something that karat does not evaluate, and why; `primitive` where it can only be a text, a number or the like.
    Opaque {
        why: String,
        primitive: bool,
    },
}

#[derive(Debug)]
pub(super) enum Item {
    Value(Expr),
    Spread(Expr),
    Hole,
}

#[derive(Debug)]
pub(super) enum Property {
    Value { key: Expr, value: Expr },
    Spread(Expr),
}

#[derive(Debug)]
pub(super) struct Call {
    pub callee: Expr,
    pub arguments: Vec<Item>,
    pub is_new: bool,
    /// The callee as it is written, shortened for messages.
    pub written: String,
}

#[derive(Debug)]
pub(super) struct Function {
    /// It returns its only parameter as it got it.
    pub is_identity: bool,
    /// What it returns, where it does nothing but return it and has no parameters.
    pub returns: Option<Expr>,
    /// It makes a tool of its arguments.
    pub makes_tool: bool,
}

//! A simplified syntax tree, common to Python, TypeScript and JavaScript: scopes with their statements, functions,
//! classes, and the expressions that can define a tool.

use std::collections::HashMap;
use std::path::PathBuf;

use karat_cases::registry::ToolLocation;
use karat_json::Position;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    JavaScript,
}

/// Index of a scope within its module; 0 is the module scope.
pub(crate) type ScopeId = usize;
pub(crate) type FunctionId = usize;
pub(crate) type ClassId = usize;

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) path: PathBuf,
    /// The path for messages.
    pub(crate) display_path: String,
    pub(crate) language: Language,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) functions: Vec<Function>,
    pub(crate) classes: Vec<Class>,
    pub(crate) exports: Vec<Export>,
    pub(crate) text: String,
    pub(crate) line_starts: Vec<u32>,
    /// Offsets of UTF-8 continuation bytes, to compute columns.
    continuation_bytes: Vec<u32>,
}

impl Module {
    pub(crate) fn new(path: PathBuf, display_path: String, language: Language, text: String) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| offset(at + 1))).collect();
        let bytes = text.bytes().enumerate();
        let continuation_bytes = bytes.filter(|(_, byte)| byte & 0xC0 == 0x80).map(|(at, _)| offset(at)).collect();
        Self {
            path,
            display_path,
            language,
            scopes: vec![Scope::new(None, Owner::Module)],
            functions: Vec::new(),
            classes: Vec::new(),
            exports: Vec::new(),
            text,
            line_starts,
            continuation_bytes,
        }
    }

    pub(crate) fn open_scope(&mut self, parent: ScopeId, owner: Owner) -> ScopeId {
        let id = self.scopes.len();
        self.scopes.push(Scope::new(Some(parent), owner));
        self.scopes[parent].inner.push(id);
        id
    }

    /// Returns the values that a function returns, with the scope of each `return`.
    pub(crate) fn returns(&self, function: FunctionId) -> Vec<(ScopeId, &Expr)> {
        let mut scopes = vec![self.functions[function].scope];
        let mut next = 0;
        while let Some(scope) = scopes.get(next) {
            let blocks = self.scopes[*scope].inner.iter().filter(|inner| self.scopes[**inner].owner == Owner::Block);
            let blocks: Vec<ScopeId> = blocks.copied().collect();
            scopes.extend(blocks);
            next += 1;
        }
        scopes
            .into_iter()
            .flat_map(|scope| self.scopes[scope].statements.iter().map(move |statement| (scope, statement)))
            .filter_map(|(scope, statement)| match statement {
                Statement::Return(value) => Some((scope, value)),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn location(&self, at: u32) -> ToolLocation {
        let line = self.line_starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.line_starts.get(line).copied().unwrap_or_default() as usize;
        let continuations_before = |until: usize| self.continuation_bytes.partition_point(|at| (*at as usize) < until);
        let at = (at as usize).min(self.text.len());
        let column = (at - start) - (continuations_before(at) - continuations_before(start)) + 1;
        ToolLocation { source: self.display_path.clone(), position: Some(Position { line: line + 1, column }) }
    }
}

pub(crate) fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[derive(Debug)]
pub(crate) struct Scope {
    pub(crate) parent: Option<ScopeId>,
    pub(crate) owner: Owner,
    /// Nested scopes.
    pub(crate) inner: Vec<ScopeId>,
    /// In source order.
    pub(crate) statements: Vec<Statement>,
    /// Indexes of binding statements, by name.
    bindings: HashMap<String, Vec<usize>>,
}

impl Scope {
    pub(crate) fn new(parent: Option<ScopeId>, owner: Owner) -> Self {
        Self { parent, owner, inner: Vec::new(), statements: Vec::new(), bindings: HashMap::new() }
    }

    pub(crate) fn add(&mut self, statement: Statement) {
        let name = match &statement {
            Statement::Assign { name, .. } | Statement::Rebind { name } | Statement::Define { name, .. } => Some(name),
            Statement::Import(import) => import.local.as_ref(),
            Statement::SetMember { .. } | Statement::Return(_) | Statement::Expression(_) => None,
        };
        if let Some(name) = name {
            self.bindings.entry(name.clone()).or_default().push(self.statements.len());
        }
        self.statements.push(statement);
    }

    /// Returns the statements that bind a name, in source order.
    pub(crate) fn binding(&self, name: &str) -> impl Iterator<Item = &Statement> {
        self.bindings.get(name).into_iter().flatten().map(|at| &self.statements[*at])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Module,
    Function(FunctionId),
    Class(ClassId),
    /// A block in JavaScript. In Python, blocks belong to the enclosing scope.
    Block,
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// `name = value`, `name: annotation = value`, `const name = value`, a class's field.
    Assign {
        name: String,
        value: Option<Expr>,
        annotation: Option<Expr>,
    },
    /// A name whose value is unknown: a loop variable, a destructured name, or one that is modified.
    Rebind {
        name: String,
    },
    /// `self.name = value`, `module.exports.name = value`.
    SetMember {
        object: Expr,
        name: String,
        value: Expr,
    },
    Define {
        name: String,
        defined: Definition,
    },
    Import(Import),
    Return(Expr),
    Expression(Expr),
}

impl Statement {
    /// Returns the expressions of a statement, without what it defines.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let (first, second) = match self {
            Self::SetMember { object, value, .. } => (Some(object), Some(value)),
            Self::Assign { value, .. } => (value.as_ref(), None),
            Self::Return(value) | Self::Expression(value) => (Some(value), None),
            Self::Rebind { .. } | Self::Define { .. } | Self::Import(_) => (None, None),
        };
        first.into_iter().chain(second)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Definition {
    Function(FunctionId),
    Class(ClassId),
}

/// One name that an import binds; `import a.b` binds `a`, and a bare `import './x'` binds nothing.
#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) local: Option<String>,
    /// Number of leading dots in Python; 0 elsewhere.
    pub(crate) level: u32,
    /// The module's dotted name, or the specifier.
    pub(crate) from: String,
    pub(crate) item: ImportedItem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportedItem {
    /// The module itself.
    Module,
    Name(String),
    /// `from a import *`
    All,
}

/// A name that a JavaScript module exports.
#[derive(Debug)]
pub(crate) enum Export {
    Local { name: String, value: Expr },
    From { name: String, imported: ImportedItem, specifier: String },
    All { specifier: String },
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) at: u32,
    /// The scope of its body; its parent is where the function is defined.
    pub(crate) scope: ScopeId,
    pub(crate) parameters: Vec<Parameter>,
    /// The return type; Python only.
    pub(crate) returns: Option<Expr>,
    pub(crate) docstring: Option<Text>,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) class: Option<ClassId>,
}

impl Function {
    pub(crate) fn is_decorated_with(&self, name: &str) -> bool {
        self.decorators.iter().any(|decorator| decorator.last_name() == Some(name))
    }
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: ParameterKind,
    pub(crate) annotation: Option<Expr>,
    pub(crate) default: Option<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Plain,
    /// `*args`, `**kwargs`, `...rest`.
    Rest,
    /// `{a, b}`
    Destructured,
}

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) name: String,
    pub(crate) at: u32,
    pub(crate) bases: Vec<Expr>,
    pub(crate) decorators: Vec<Expr>,
    /// The scope of its body.
    pub(crate) scope: ScopeId,
    pub(crate) docstring: Option<Text>,
}

#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) at: u32,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) at: u32,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    /// An f-string or a template.
    Template(Vec<Expr>),
    /// A list, tuple, set or array.
    List(Vec<Expr>),
    Object(Vec<Entry>),
    /// Within a list, an object or arguments.
    Spread(Box<Expr>),
    Name(String),
    Member(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Add(Box<Expr>, Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// `a | b`, `a || b`, `a ?? b`, `a or b`.
    Or(Box<Expr>, Box<Expr>),
    /// A conditional expression, without its condition.
    Conditional(Box<Expr>, Box<Expr>),
    Call(Box<Call>),
    /// An object without some of its entries: `rest` of `const { a, ...rest } = b`.
    ObjectRest(Box<Expr>, Vec<String>),
    Function(FunctionId),
    Class(ClassId),
    /// Any other expression, with its parts.
    Other(Vec<Expr>),
}

/// An integer operation with the same result in both languages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arithmetic {
    Subtract,
    Multiply,
    /// Without a remainder.
    Divide,
}

#[derive(Debug)]
pub(crate) enum Entry {
    Value { key: Expr, value: Expr },
    Spread(Expr),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) callee: Expr,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) named: Vec<(String, Expr)>,
}

impl Call {
    pub(crate) fn named(&self, name: &str) -> Option<&Expr> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

impl Expr {
    pub(crate) fn new(at: u32, kind: Kind) -> Self {
        Self { at, kind }
    }

    /// Returns the last part of a name: `tool` for `tool`, `mcp.tool`, `mcp.tool()`.
    pub(crate) fn last_name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) | Kind::Member(_, name) => Some(name),
            Kind::Call(call) => call.callee.last_name(),
            Kind::Index(object, _) => object.last_name(),
            _ => None,
        }
    }

    /// Returns a dotted name, such as `mcp.tool`.
    pub(crate) fn dotted(&self) -> Option<String> {
        match &self.kind {
            Kind::Name(name) => Some(name.clone()),
            Kind::Member(object, name) => Some(format!("{}.{name}", object.dotted()?)),
            _ => None,
        }
    }

    /// Calls `visit` for this expression and all nested expressions, outermost first. Bodies of functions and classes
    /// have their own scopes and are not visited.
    pub(crate) fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        match &self.kind {
            Kind::Template(parts) | Kind::List(parts) | Kind::Other(parts) => {
                for part in parts {
                    part.walk(visit);
                }
            }
            Kind::Object(entries) => {
                for entry in entries {
                    match entry {
                        Entry::Value { key, value } => {
                            key.walk(visit);
                            value.walk(visit);
                        }
                        Entry::Spread(value) => value.walk(visit),
                    }
                }
            }
            Kind::Spread(inner) | Kind::Member(inner, _) | Kind::ObjectRest(inner, _) => inner.walk(visit),
            Kind::Index(left, right)
            | Kind::Add(left, right)
            | Kind::Arithmetic(_, left, right)
            | Kind::Or(left, right)
            | Kind::Conditional(left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            Kind::Call(call) => {
                call.callee.walk(visit);
                for argument in call.arguments.iter().chain(call.named.iter().map(|(_, value)| value)) {
                    argument.walk(visit);
                }
            }
            Kind::Null
            | Kind::Bool(_)
            | Kind::Number(_)
            | Kind::Text(_)
            | Kind::Name(_)
            | Kind::Function(_)
            | Kind::Class(_) => {}
        }
    }
}

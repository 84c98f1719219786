//! Resolves imports to files of the project.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::files::{SCRIPT_EXTENSIONS, extension, is_script};

/// Source extensions by the extension of the compiled file.
const SOURCES: [(&str, &[&str]); 4] = [("js", &["ts", "tsx"]), ("jsx", &["tsx"]), ("mjs", &["mts"]), ("cjs", &["cts"])];

/// Number of parent folders that are searched for a Python module or a configuration file.
pub(super) const MAX_ANCESTORS: usize = 6;

/// Finds the file of a Python module: relative to the dots, or in the parent folders of the importing file.
pub(super) fn find_python_module(from: &Path, level: u32, name: &str) -> Option<PathBuf> {
    let folder = from.parent()?;
    let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
    let file_in = |root: &Path| {
        let target = parts.iter().fold(root.to_path_buf(), |folder, part| folder.join(part));
        let package = target.join("__init__.py");
        if package.is_file() {
            return Some(package);
        }
        let file = target.with_file_name(format!("{}.py", target.file_name()?.to_string_lossy()));
        (!parts.is_empty() && file.is_file()).then_some(file)
    };
    if level > 0 {
        return file_in(folder.ancestors().nth(level as usize - 1)?);
    }
    if parts.is_empty() {
        return None;
    }
    let roots = folder.ancestors().take(MAX_ANCESTORS);
    roots.flat_map(|root| [root.to_path_buf(), root.join("src")]).find_map(|root| file_in(&root))
}

/// Resolves JavaScript imports, with the path aliases of `tsconfig.json`.
#[derive(Default)]
pub(super) struct ScriptResolver {
    /// The configuration that applies to each folder.
    configs: HashMap<PathBuf, Option<Aliases>>,
}

#[derive(Clone)]
struct Aliases {
    base: PathBuf,
    /// Patterns with their targets, such as `@/*` and `src/*`.
    paths: Vec<(String, Vec<String>)>,
}

impl ScriptResolver {
    pub(super) fn resolve(&mut self, from: &Path, specifier: &str) -> Option<PathBuf> {
        // Bundlers take a query such as `?raw` as an instruction.
        let specifier = specifier.split('?').next().unwrap_or_default();
        let folder = from.parent()?;
        let is_typescript = extension(from).contains("ts");
        if specifier.starts_with('.') || specifier.starts_with('/') {
            return find_script(&normalise(&folder.join(specifier)), is_typescript);
        }
        let Some(aliases) = self.aliases(folder) else { return conventional_alias(folder, specifier, is_typescript) };
        let targets = aliases.paths.iter().filter_map(|(pattern, targets)| {
            let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
            let middle = specifier.strip_prefix(before)?.strip_suffix(after)?;
            (pattern.contains('*') || middle.is_empty()).then_some((middle, targets))
        });
        let renamed = targets.flat_map(|(middle, targets)| targets.iter().map(|target| target.replace('*', middle)));
        let path = renamed.map(|target| aliases.base.join(target));
        // `baseUrl` makes every path below it importable.
        let mut candidates = path.chain([aliases.base.join(specifier)]);
        let path = candidates.find_map(|target| find_script(&normalise(&target), is_typescript));
        path.or_else(|| conventional_alias(folder, specifier, is_typescript))
    }

    fn aliases(&mut self, folder: &Path) -> Option<Aliases> {
        if let Some(known) = self.configs.get(folder) {
            return known.clone();
        }
        let aliases = folder.ancestors().take(MAX_ANCESTORS).find_map(read_aliases);
        self.configs.insert(folder.to_owned(), aliases.clone());
        aliases
    }
}

/// Resolves `@/x` and `~/x` without a configuration: by convention, a file of the package.
fn conventional_alias(folder: &Path, specifier: &str, is_typescript: bool) -> Option<PathBuf> {
    let inside = specifier.strip_prefix("@/").or_else(|| specifier.strip_prefix("~/"))?;
    let root = folder.ancestors().take(MAX_ANCESTORS).find(|folder| folder.join("package.json").is_file())?;
    ["", "src"].iter().find_map(|part| find_script(&normalise(&root.join(part).join(inside)), is_typescript))
}

fn read_aliases(folder: &Path) -> Option<Aliases> {
    ["tsconfig.json", "jsconfig.json"].iter().find_map(|name| aliases_in(&folder.join(name), 0))
}

/// Reads the aliases of a configuration or of the one that it extends.
fn aliases_in(file: &Path, depth: usize) -> Option<Aliases> {
    let folder = file.parent()?;
    let text = std::fs::read_to_string(file).ok()?;
    let config: Value = serde_json::from_str(&strip_comments(&text)).ok()?;
    let options = &config["compilerOptions"];
    let base = options["baseUrl"].as_str().map(|base| folder.join(base));
    let paths: Vec<_> = options["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(pattern, targets)| {
            let targets = targets.as_array().into_iter().flatten().filter_map(Value::as_str);
            (pattern.clone(), targets.map(str::to_owned).collect())
        })
        .collect();
    if base.is_none() && paths.is_empty() {
        let extended = config["extends"].as_str().filter(|path| path.starts_with('.') && depth < MAX_ANCESTORS)?;
        let extended = normalise(&folder.join(extended));
        let with_ending = append_extension(&extended, "json");
        return aliases_in(if extended.is_file() { &extended } else { &with_ending }, depth + 1);
    }
    Some(Aliases { base: base.unwrap_or_else(|| folder.to_owned()), paths })
}

/// Removes comments and trailing commas, which are allowed in `tsconfig.json`.
fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut is_text = false;
    while let Some(letter) = rest.next() {
        match letter {
            '"' => {
                is_text = !is_text;
                out.push(letter);
            }
            '\\' if is_text => {
                out.push(letter);
                out.extend(rest.next());
            }
            '/' if !is_text && rest.peek() == Some(&'/') => {
                while rest.peek().is_some_and(|letter| *letter != '\n') {
                    rest.next();
                }
            }
            '/' if !is_text && rest.peek() == Some(&'*') => {
                rest.next();
                let mut last = ' ';
                for letter in rest.by_ref() {
                    if last == '*' && letter == '/' {
                        break;
                    }
                    last = letter;
                }
            }
            '}' | ']' if !is_text => {
                let length = out.trim_end().trim_end_matches(',').len();
                out.truncate(length);
                out.push(letter);
            }
            _ => out.push(letter),
        }
    }
    out
}

/// Finds a file by the combined rules of Node, TypeScript and bundlers: the exact path, the source of a `.js` file, the
/// path with an extension, or the index of a folder.
fn find_script(path: &Path, is_typescript: bool) -> Option<PathBuf> {
    let written = extension(path);
    let mut candidates = Vec::new();
    if let Some((_, sources)) = SOURCES.iter().find(|(compiled, _)| *compiled == written) {
        candidates.extend(sources.iter().map(|source| path.with_extension(source)));
    }
    // TypeScript imports name the compiled `.js` file of a `.ts` file.
    candidates.insert(if is_typescript { candidates.len() } else { 0 }, path.to_owned());
    candidates.extend(SCRIPT_EXTENSIONS.iter().chain(&["json"]).map(|extension| append_extension(path, extension)));
    candidates.extend(SCRIPT_EXTENSIONS.iter().map(|extension| path.join(format!("index.{extension}"))));
    let file = candidates.into_iter().find(|candidate| candidate.is_file())?;
    (is_script(&file) || extension(&file) == "json").then_some(file)
}

fn append_extension(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Removes `.` and `..` from a path lexically.
fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn files(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in names {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            std::fs::write(path, "").expect("written");
        }
        folder
    }

    #[rstest]
    #[case("./a.js", "x/a.ts")]
    #[case("./a", "x/a.ts")]
    #[case("./b.tool", "x/b.tool.mjs")]
    #[case("../x/./folder", "x/folder/index.tsx")]
    #[case("./both.js", "x/both.ts")]
    #[case("./plain.js", "x/plain.js")]
    #[case("@/shared/c", "src/shared/c.ts")]
    #[case("@lib", "src/lib/index.ts")]
    fn resolves_specifiers(#[case] specifier: &str, #[case] expected: &str) {
        let names = [
            "x/a.ts",
            "x/b.tool.mjs",
            "x/folder/index.tsx",
            "x/both.ts",
            "x/both.js",
            "x/plain.js",
            "src/shared/c.ts",
            "src/lib/index.ts",
        ];
        let folder = files(&names);
        let config = "{ // comment\n \"compilerOptions\": { \"paths\": { \"@/*\": [\"./src/*\"], \"@lib\": [\"src/lib\"], }, } }";
        std::fs::write(folder.path().join("tsconfig.json"), config).expect("written");
        let resolved = ScriptResolver::default().resolve(&folder.path().join("x/from.ts"), specifier);
        assert_eq!(resolved, Some(folder.path().join(expected)));
    }

    #[rstest]
    #[case("zod")]
    #[case("./none")]
    fn ignores_packages_and_missing_files(#[case] specifier: &str) {
        assert_eq!(ScriptResolver::default().resolve(Path::new("/nowhere/from.ts"), specifier), None);
    }

    #[rstest]
    #[case(0, "app.tools", "src/app/tools.py")]
    #[case(0, "tools", "src/app/tools.py")]
    #[case(1, "tools", "src/app/tools.py")]
    #[case(1, "", "src/app/__init__.py")]
    #[case(2, "other", "src/other/__init__.py")]
    fn resolves_python_modules(#[case] level: u32, #[case] name: &str, #[case] expected: &str) {
        let folder = files(&["src/app/__init__.py", "src/app/tools.py", "src/app/main.py", "src/other/__init__.py"]);
        let resolved = find_python_module(&folder.path().join("src/app/main.py"), level, name);
        assert_eq!(resolved, Some(folder.path().join(expected)));
    }
}

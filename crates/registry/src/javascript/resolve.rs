//! Which file an import means.

use std::path::{Component, Path, PathBuf};

/// What stands behind the specifier of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resolution {
    File(PathBuf),
    Json(PathBuf),
    /// A file that holds no code: a style sheet, an image.
    Other,
    /// Not of this project.
    Package,
    Missing,
}

pub(super) const EXTENSIONS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];

/// Finds the file of a specifier as Node, TypeScript and bundlers do between them: as it is written, as the source of
/// the `.js` file that it names, with an extension, or as a folder's index.
pub(super) fn resolve(from: &Path, specifier: &str) -> Resolution {
    if !is_relative(specifier) {
        return Resolution::Package;
    }
    // Bundlers take `?raw` and the like as instructions.
    let specifier = specifier.split(['?', '#']).next().unwrap_or_default();
    let folder = from.parent().unwrap_or(Path::new(""));
    let wanted = normal(&folder.join(specifier));
    let extension = extension(&wanted);
    let from_typescript = self::extension(from).contains("ts");
    let mut candidates = Vec::new();
    if let Some((_, sources)) = SOURCES.iter().find(|(compiled, _)| *compiled == extension) {
        candidates.extend(sources.iter().map(|source| wanted.with_extension(source)));
    }
    // A TypeScript file names the `.js` file that will be made of a `.ts` file.
    candidates.insert(if from_typescript { candidates.len() } else { 0 }, wanted.clone());
    candidates.extend(EXTENSIONS.iter().chain(&["json", "d.ts"]).map(|extension| appended(&wanted, extension)));
    candidates.extend(EXTENSIONS.iter().map(|extension| wanted.join(format!("index.{extension}"))));
    match candidates.into_iter().find(|candidate| candidate.is_file()) {
        None => Resolution::Missing,
        Some(found) => match self::extension(&found).as_str() {
            "json" => Resolution::Json(found),
            extension if EXTENSIONS.contains(&extension) => Resolution::File(found),
            _ => Resolution::Other,
        },
    }
}

/// The sources that a compiled file may come from.
const SOURCES: [(&str, &[&str]); 4] = [("js", &["ts", "tsx"]), ("jsx", &["tsx"]), ("mjs", &["mts"]), ("cjs", &["cts"])];

fn is_relative(specifier: &str) -> bool {
    specifier == "." || specifier == ".." || ["./", "../", "/"].iter().any(|start| specifier.starts_with(start))
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn appended(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Takes `.` and `..` out of a path by its text alone.
fn normal(path: &Path) -> PathBuf {
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

    #[rstest]
    #[case("./a.js", "a.ts")]
    #[case("./a", "a.ts")]
    #[case("./b.tool", "b.tool.mjs")]
    #[case("../x/./folder", "folder/index.tsx")]
    #[case("./both.js", "both.ts")]
    #[case("./plain.js", "plain.js")]
    fn a_specifier_means_a_file(#[case] specifier: &str, #[case] expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("x");
        std::fs::create_dir_all(root.join("folder")).unwrap();
        for name in ["a.ts", "b.tool.mjs", "folder/index.tsx", "both.ts", "both.js", "plain.js"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        assert_eq!(resolve(&root.join("from.ts"), specifier), Resolution::File(root.join(expected)));
    }

    #[rstest]
    #[case("zod", Resolution::Package)]
    #[case("@scope/x", Resolution::Package)]
    #[case("./none", Resolution::Missing)]
    fn some_mean_none(#[case] specifier: &str, #[case] expected: Resolution) {
        assert_eq!(resolve(Path::new("/nowhere/from.ts"), specifier), expected);
    }
}

//! Modules that eval functions may import.

/// Modules that every function may import.
pub(crate) const COMMON_MODULES: [&str; 4] = ["json", "karat_text", "re", "typing"];

/// Modules of the standard library that a project may allow. The guest imports them when it is built.
pub const OPTIONAL_MODULES: [&str; 26] = [
    "abc",
    "ast",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "itertools",
    "logging",
    "math",
    "operator",
    "statistics",
    "string",
    "textwrap",
    "traceback",
    "types",
    "unicodedata",
    "urllib.parse",
    "warnings",
    "xml.etree",
];

/// Top-level modules of the standard library, which helper modules of a project cannot replace.
const STANDARD_LIBRARY: &str = "abc aifc annotationlib argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb \
    binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop \
    collections colorsys compileall compression concurrent configparser contextlib contextvars copy \
    copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email \
    encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
    functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http \
    imaplib imghdr imp importlib inspect io ipaddress itertools json keyword linecache locale logging \
    lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc \
    nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle \
    pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd \
    py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource \
    rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib \
    sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics \
    string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib \
    tempfile termios textwrap threading time timeit tkinter token tokenize tomllib trace traceback \
    tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings \
    wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib \
    zoneinfo";

/// Whether a module belongs to the standard library.
pub(crate) fn is_standard(module: &str) -> bool {
    STANDARD_LIBRARY.split(' ').any(|name| name == root(module))
}

/// Whether every function may import a module.
pub(crate) fn is_common(module: &str) -> bool {
    COMMON_MODULES.contains(&root(module))
}

/// Returns the name of the package that a module belongs to.
pub(crate) fn root(module: &str) -> &str {
    module.split('.').next().unwrap_or_default()
}

/// Returns the entry of a list that equals a module or contains it.
pub(crate) fn entry_of<'e>(module: &str, mut entries: impl Iterator<Item = &'e str>) -> Option<&'e str> {
    entries.find(|entry| module.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_entry_of_a_module() {
        let entry = |module| entry_of(module, OPTIONAL_MODULES.into_iter());
        assert_eq!(entry("collections.abc"), Some("collections"));
        assert_eq!(entry("xml.etree.ElementTree"), Some("xml.etree"));
        assert_eq!((entry("urllib"), entry("mathematics"), entry("os")), (None, None, None));
        assert!(is_common("json.decoder") && !is_common("jsonschema"));
        assert!(is_standard("os.path") && is_standard("zlib") && !is_standard("helpers"));
    }
}

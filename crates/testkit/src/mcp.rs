//! A minimal MCP server in shell, for behaviour that real servers lack.

/// Answers the handshake, lists its tools on two pages, and runs them.
const SERVER: &str = r#"
        answer() { echo '{"jsonrpc":"2.0","id":'"$id"',"'"$1"'":'"$2"'}'; }
        tool() { printf '{"name":"%s","inputSchema":{"type":"object"}}' "$1"; }
        while read -r line; do
            id=${line#*'"id":'}; id=${id%%[,\}]*}
            case $line in
                *'"initialize"'*) answer result '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"9.9"}}';;
                *'"cursor":"two"'*) answer result '{"tools":['"$(tool odd),$(tool refuse),$(tool pid)"']}';;
                *'"tools/list"'*) answer result '{"tools":['"$(tool hello),$(tool die)"'],"nextCursor":"two"}';;
                *'"name":"hello"'*) answer result '{"content":[{"type":"text","text":"hello"}]}';;
                *'"name":"die"'*) echo "last words" >&2; exit 7;;
                *'"name":"odd"'*) answer result '{"content":[{"type":"hologram","depth":3}]}';;
                *'"name":"refuse"'*) answer error '{"code":-32602,"message":"not like this"}';;
                *'"name":"pid"'*) answer result '{"content":[{"type":"text","text":"'"$$"'"}]}';;
            esac
        done"#;

/// Returns the command of a server with the tools `hello` (returns hello), `die` (ends the server), `odd` (returns an
/// unknown content type), `refuse` (returns a protocol error) and `pid`. The script `setup` runs first.
pub fn shell_server(setup: &str) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), format!("{setup}\n{SERVER}")]
}

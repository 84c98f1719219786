//! Which definitions are tools, and which of their parameters are visible to a model.

use std::path::Path;

use karat_registry::read_path;
use rstest::rstest;

/// Returns each tool as `name(parameters)`; unknown parameters are `?`.
fn tools(file: &str, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), text).unwrap();
    let Ok(registry) = read_path(&folder.path().join(Path::new(file)), folder.path()) else { return Vec::new() };
    let tools = registry.tools().iter().map(|tool| {
        let parameters = match tool.input_schema.get() {
            Some(schema) => {
                schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
            }
            None => vec!["?"],
        };
        format!("{}({})", tool.name, parameters.join(" "))
    });
    tools.collect()
}

#[rstest]
#[case::workflow_steps(
    "import { createStep } from '@mastra/core/workflows';\n\
     const step = createStep({ id: 'plan', description: 'Plans.', inputSchema: z.object({ topic: z.string() }), execute });\n\
     const named = createStep({ name: 'draft', description: 'Drafts.', inputSchema: z.object({}), execute });\n",
    &[]
)]
#[case::tools_of_a_call(
    "import { streamText } from 'ai';\n\
     streamText({ tools: { look: { description: 'Looks.', parameters: z.object({ city: z.string() }), execute } } });\n",
    &["look(city)"]
)]
#[case::parameters_of_an_endpoint(
    "const e = { path: '/x', parameters: [{ name: 'filter', description: 'F.', schema: z.string().optional() }] };\n\
     const p = { name: 'sort', description: 'S.', schema: z.number() };\n",
    &[]
)]
#[case::prompt("const p = { name: 'plan', description: 'D.', argsSchema: { days: z.string() }, callback };\n", &[])]
#[case::fields_of_a_type(
    "const Out = Base.extend({ name: z.string(), description: z.string(), parameters: z.any() });\n",
    &[]
)]
#[case::call_of_a_tool(
    "calls.push({ id: '1', type: 'function', function: { name: 'search', arguments: '{}' } });\n",
    &[]
)]
#[case::suggestions("const toolCallHints = [{ id: 'limit', description: 'Shows the limit.' }];\n", &[])]
#[case::run_of_a_tool("await safeExecuteTool('search', async () => 1);\nawait readTool(other(), 'xml', a ? {} : b);\n", &[])]
#[case::handler_alone("server.tool('ping', async () => 1);\n", &["ping()"])]
#[case::divided(
    "const t = { name: 'look', definition: { description: 'D.', inputSchema: { city: z.string() } }, handler };\n",
    &["look(city)"]
)]
#[case::configuration_of_a_function(
    "async function look() {}\nlook.config = { description: 'D.', inputSchema: { city: z.string() } };\n\
     server.registerTool('look', look.config, look);\n",
    &["look(city)"]
)]
#[case::configuration_from_elsewhere("server.registerTool('look', settings.look, handler);\n", &["look(?)"])]
#[case::names_of_the_agents_sdk(
    "import { tool } from '@openai/agents';\n\
     const t = tool({ name: 'look around-here', description: 'D.', parameters: z.object({}), execute });\n",
    &["look_around_here()"]
)]
#[case::retriever(
    "const t = createRetrieverTool(retriever, { name: 'search_docs', description: 'D.' });\n",
    &["search_docs(query)"]
)]
#[case::without_input(
    "import { createTool } from '@mastra/core/tools';\n\
     export const t = createTool({ id: 'list', description: 'D.', outputSchema: z.object({}), execute });\n",
    &["list()"]
)]
#[case::decorated_method(
    "class Weather {\n  @Tool({ name: 'look', description: 'D.', parameters: z.object({ city: z.string() }) })\n  async look() {}\n}\n",
    &["look(city)"]
)]
fn reads_scripts(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(tools("module.ts", &format!("import {{ z }} from 'zod';\n{text}")), expected);
}

#[rstest]
#[case::excluded_arguments(
    "from fastmcp import FastMCP\nmcp = FastMCP('x')\n\
     @mcp.tool(exclude_args=['page'])\ndef look(city: str, page: object = None):\n    '''D.'''\n",
    &["look(city)"]
)]
#[case::arguments_of_strands(
    "from strands import tool\n\
     @tool(context='where')\ndef look(city: str, agent=None, where=None):\n    '''D.'''\n",
    &["look(city)"]
)]
#[case::changed_signature(
    "import functools, inspect\nfrom fastmcp import FastMCP\nmcp = FastMCP('x')\n\
     def with_service(function):\n    @functools.wraps(function)\n    def wrapper(*args, **kwargs):\n        return function(service(), *args, **kwargs)\n    \
     wrapper.__signature__ = inspect.Signature([])\n    return wrapper\n\
     @mcp.tool()\n@with_service\ndef look(service, city: str):\n    '''D.'''\n",
    &["look(?)"]
)]
#[case::retriever(
    "from langchain.tools.retriever import create_retriever_tool\n\
     t = create_retriever_tool(retriever, name='search_docs', description='D.')\n",
    &["search_docs(query)"]
)]
#[case::function_from_elsewhere(
    "from langchain.tools import Tool\nfrom own.tools import OwnTool\n\
     a = Tool(name='search', func=engine.run, description='D.')\n\
     b = OwnTool(name='look', description='D.', func=engine.look)\n",
    &["search(__arg1)", "look(?)"]
)]
#[case::schema_of_a_parameter(
    "from mcp import types\n\
     class Weather:\n    def schema(self):\n        return {'type': 'object', 'properties': {'city': {'type': 'string'}}}\n\
     def register(server, weather: Weather):\n    @server.list_tools()\n    async def all():\n        \
     return [types.Tool(name='look', description='D.', inputSchema=weather.schema())]\n",
    &["look(city)"]
)]
#[case::schema_of_a_parameter_that_may_be_derived(
    "from mcp import types\n\
     class Weather:\n    def schema(self):\n        return {'type': 'object', 'properties': {'city': {'type': 'string'}}}\n\
     class Other(Weather):\n    def schema(self):\n        return {}\n\
     def register(server, weather: Weather):\n    @server.list_tools()\n    async def all():\n        \
     return [types.Tool(name='look', description='D.', inputSchema=weather.schema())]\n",
    &["look(?)"]
)]
#[case::result_of_a_tool("class Part(ToolCallPart):\n    tool_name = 'search'\n    args: dict\n", &[])]
#[case::other_classes(
    "class Cross(Strategy):\n    name = 'cross'\n    description = 'D.'\n    parameters = {'days': 20}\n",
    &[]
)]
#[case::other_data("PLANS = {'cross': {'name': 'cross', 'description': 'D.', 'parameters': {'days': 20}}}\n", &[])]
#[case::listed_parameters(
    "TOOLS = [{'label': 'x', 'parameters': [{'name': 'code', 'type': 'string', 'description': 'The code.'}]}]\n",
    &[]
)]
fn reads_python(#[case] text: &str, #[case] expected: &[&str]) {
    assert_eq!(tools("module.py", text), expected);
}

#[rstest]
#[case("fastmcp == 3.4.5\n", "Looks.\n\nNote:\n    Slowly.")]
#[case("fastmcp >= 3.4.5\n", "Looks.")]
fn descriptions_depend_on_the_required_library_version(#[case] requirements: &str, #[case] expected: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("server.py");
    std::fs::write(folder.path().join("requirements.txt"), requirements).expect("written");
    let text = "from fastmcp import FastMCP\nmcp = FastMCP('x')\n\
                @mcp.tool\ndef look(city: str):\n    \"\"\"Looks.\n\n    Note:\n        Slowly.\n    \"\"\"\n";
    std::fs::write(&file, text).expect("written");
    let registry = read_path(&file, folder.path()).expect("tools");
    assert_eq!(registry.tools()[0].description.as_deref(), Some(expected));
}

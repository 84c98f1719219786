// Prints the tools of a JavaScript or TypeScript module as JSON, as their library presents them to a model.
//
//     karat tools export-script node > export-tools.mjs
//     node export-tools.mjs src/server.js > tools.json                    # a file, or a package by name
//     node export-tools.mjs src/server.js tools > tools.json              # only this export
//     node export-tools.mjs src/server.js 'createServer()' > tools.json   # only the return value of this function
//
// karat reads the output with "toolRegistryPath": "tools.json", or runs the script itself with
// "toolRegistry": {"command": ["node", "export-tools.mjs", "src/server.js"]} in karat.json.
//
// Needs Node 18 or newer and only the module's own packages; TypeScript needs Node 22.18 or newer, or
// `npx tsx export-tools.mjs src/server.ts`. It imports the module. Without an export name it exports all MCP servers,
// tools and lists of tools that the module exports, and the MCP servers that it would connect; no connection is made.
// Exits with 1 if there are no tools.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [name, path] = process.argv.slice(2);
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr); // the module may print
const isObject = value => value !== null && typeof value === 'object';
const isZod3 = value => isObject(value) && '_def' in value && typeof value.safeParse === 'function';
const isSchema = value => isObject(value) && ('~standard' in value || '_zod' in value || isZod3(value));

/** Loads a package as the module would; undefined if it is not installed. */
const require = createRequire(resolve(name ?? '.', 'x.js'));
const load = name => {
  try {
    return require(name);
  } catch {
    return undefined;
  }
};

const connected = [];
/** Collects the MCP servers that the module connects, in both module formats of the SDK. */
async function interceptServers() {
  let file;
  try {
    file = require.resolve('@modelcontextprotocol/sdk/server/index.js');
  } catch {
    return; // not installed
  }
  for (const path of new Set([file, file.replace(/([\\/])cjs([\\/])/, '$1esm$2')])) {
    const { Server } = await import(pathToFileURL(path).href);
    Server.prototype.connect = async function () {
      connected.push(this);
    };
  }
}

/** Converts zod 3 and 4, other standard schemas, maps of schemas and AI SDK schemas to JSON Schema. */
async function jsonSchema(schema) {
  if (!isObject(schema)) return { type: 'object', properties: {} };
  const options = { io: 'input', unrepresentable: 'any' };
  const standard = schema['~standard']?.jsonSchema;
  if (standard) return standard.input({ target: 'draft-2020-12', libraryOptions: options });
  if ('_zod' in schema) {
    const convert = load('zod')?.toJSONSchema ?? load('zod/v4')?.toJSONSchema;
    if (convert) return convert(schema, options);
  }
  if (isZod3(schema)) {
    const convert = load('zod-to-json-schema')?.zodToJsonSchema;
    if (convert) return convert(schema, { $refStrategy: 'none' });
    return schema.shape ? jsonSchema(schema.shape) : schema.description ? { description: schema.description } : {};
  }
  if ('jsonSchema' in schema) return schema.jsonSchema;
  const fields = Object.entries(schema);
  if (fields.length === 0 || !fields.every(([, field]) => isSchema(field))) return schema;
  const properties = {};
  for (const [name, field] of fields) {
    const { $schema, ...property } = await jsonSchema(field._def?.typeName === 'ZodOptional' ? field.unwrap() : field);
    properties[name] = { ...property, description: field.description ?? property.description };
  }
  const isOptional = field => (field._zod ? field._zod.optin === 'optional' : field.isOptional?.() === true);
  return { type: 'object', properties, required: fields.filter(([, field]) => !isOptional(field)).map(([name]) => name) };
}

const tools = new Map();
function add(name, description, inputSchema) {
  const tool = { name, description: description || undefined, inputSchema: { ...inputSchema, $schema: undefined } };
  const text = JSON.stringify(tool);
  if (tools.has(name) && tools.get(name) !== text) {
    console.error(`warning: duplicate tool name '${name}'; the second definition is ignored`);
  } else tools.set(name, text);
}

const seen = new Set();
async function collect(key, value, depth = 0) {
  if (!isObject(value) || isSchema(value) || seen.has(value) || depth > 5) return;
  seen.add(value);
  const handlers = (value.server ?? value)._requestHandlers; // McpServer or Server
  if (handlers instanceof Map) {
    const request = { jsonrpc: '2.0', id: 0, method: 'tools/list', params: {} };
    const list = await handlers.get('tools/list')?.(request, { signal: new AbortController().signal });
    for (const tool of list?.tools ?? []) add(tool.name, tool.description, tool.inputSchema);
    return;
  }
  // OpenAI's chat format, or else OpenAI Agents, Vercel AI, Mastra, LangChain, Anthropic and a project's own objects.
  const tool = value.type === 'function' && isObject(value.function) ? value.function : value;
  const schema = tool.inputSchema ?? tool.input_schema ?? tool.parameters ?? tool.schema;
  const isCallable = ['execute', 'invoke', 'handler', 'run'].some(name => typeof tool[name] === 'function');
  const isProviderTool = String(tool.type).startsWith('provider');
  if (typeof tool.description === 'string' && (isObject(schema) || isCallable) && !isProviderTool) {
    add(tool.name ?? tool.id ?? key, tool.description, await jsonSchema(schema));
    return;
  }
  const isPlain = Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value)) || depth === 0;
  const isUnnamed = ([, inner]) => isObject(inner) && 'description' in inner && !inner.name && !inner.id;
  const members = isPlain ? Object.entries(value) : [['tools', value.tools]];
  // Prefer the key in a list of tools over the name of an exported variable.
  members.sort((one, other) => isUnnamed(one) - isUnnamed(other));
  for (const [key, inner] of members) await collect(key, inner, depth + 1);
}

async function main() {
  if (name === undefined) throw new Error('usage: node export-tools.mjs MODULE_OR_FILE [EXPORT]');
  await interceptServers();
  const module = await import(existsSync(name) ? pathToFileURL(resolve(name)).href : name);
  let source = module;
  for (const step of path?.split('.') ?? []) {
    const member = source?.[step.replace('()', '')] ?? source?.default?.[step.replace('()', '')];
    if (member === undefined) throw new Error(`'${step}' not found in ${name}`);
    source = step.endsWith('()') ? await member.call(source) : member;
  }
  await new Promise(resolve => setTimeout(resolve)); // lets pending work of the module run
  await collect(path?.split('.').pop(), source === module ? { ...module } : source);
  for (const server of source === module ? connected : []) await collect('server', server);
  if (tools.size === 0) throw new Error(`no tools found in ${process.argv.slice(2).join(' ')}: is the tool or server exported?`);
}

main().then(
  () => write(`[\n  ${[...tools.values()].join(',\n  ')}\n]\n`, () => process.exit(0)),
  error => {
    console.error(error);
    process.exit(1);
  },
);

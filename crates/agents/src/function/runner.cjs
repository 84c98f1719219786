// Answers messages with a function of the project: a request per line on stdin, a reply per line on stdout.
"use strict";

const childProcess = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");
const { pathToFileURL, fileURLToPath } = require("node:url");

const [file, name, root] = process.argv.slice(-3);
const write = process.stdout.write.bind(process.stdout);
// Output of the function must not be mixed with the replies.
process.stdout.write = process.stderr.write.bind(process.stderr);

async function main() {
  let answer;
  try {
    answer = await load();
  } catch (error) {
    await send({ failed: error instanceof Invalid ? error.message : describe(error) });
    process.exit(0);
  }
  await send({ ready: true });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { message, conversationId, turn, messages, caseId, traceparent } = JSON.parse(line);
    const reply = await call(answer, message, { conversationId, turn, messages, caseId, traceparent });
    try {
      await send(reply);
    } catch (error) {
      await send({ error: `the function's reply cannot be written as JSON: ${error?.message}` });
    }
  }
  process.exit(0);
}

class Invalid extends Error {}

async function load() {
  const location = path.resolve(root, file);
  if (!fs.existsSync(location)) {
    throw new Invalid(`file '${file}' not found in ${root}`);
  }
  const exported = await import(pathToFileURL(location).href).catch((error) => {
    throw error instanceof SyntaxError ? new Invalid(syntaxError(error, location)) : error;
  });
  const candidates = [exported, exported.default, exported.default?.default];
  const own = (value) => value !== null && ["object", "function"].includes(typeof value);
  let found = candidates.filter(own).map((value) => value[name]).find((value) => value !== undefined);
  if (name === "default" && typeof found !== "function" && typeof found?.default === "function") {
    found = found.default;
  }
  if (found === undefined) {
    const names = new Set(candidates.filter(own).flatMap((value) => Object.keys(value)));
    const list = names.size === 0 ? "nothing" : [...names].join(", ");
    throw new Invalid(`'${file}' does not export '${name}': it exports ${list}`);
  }
  if (typeof found !== "function") {
    throw new Invalid(`'${name}' of '${file}' is not a function but of type ${typeof found}`);
  }
  return found;
}

async function call(answer, message, conversation) {
  const started = performance.now();
  let first;
  try {
    let reply = await answer(message, conversation);
    const isStream = typeof reply === "object" && reply !== null
      && (reply[Symbol.asyncIterator] || typeof reply.next === "function" && reply[Symbol.iterator]);
    if (isStream) {
      const parts = [];
      for await (const part of reply) {
        first ??= performance.now();
        parts.push(part);
      }
      reply = parts.every((part) => typeof part === "string") ? parts.join("") : parts;
    }
    const firstTokenMs = first === undefined ? undefined : first - started;
    return { reply: reply ?? null, elapsedMs: performance.now() - started, firstTokenMs };
  } catch (error) {
    console.error(error);
    return { error: `the function threw ${describe(error)}` };
  }
}

function send(value) {
  const text = JSON.stringify(value, toJson);
  // JSON of other programs cannot have half a character.
  const whole = text.replace(/\\\\|\\ud[89a-f][0-9a-f]{2}/g, (part) => (part === "\\\\" ? part : "\ufffd"));
  return new Promise((resolve, reject) => write(whole + "\n", (error) => (error ? reject(error) : resolve())));
}

const KINDS = { HumanMessage: "human", AIMessage: "ai", AIMessageChunk: "ai", SystemMessage: "system", ToolMessage: "tool" };

function toJson(_key, value) {
  if (value instanceof Map) {
    return Object.fromEntries(value);
  }
  if (value instanceof Set) {
    return [...value];
  }
  // A message of LangChain.
  if (value?.lc === 1 && value.type === "constructor" && Array.isArray(value.id)) {
    return { type: KINDS[value.id.at(-1)] ?? value.id.at(-1), ...value.kwargs };
  }
  return value;
}

// Returns the type and text of an error, with the first line of the project in its stack.
function describe(error) {
  if (!(error instanceof Error)) {
    return typeof error === "string" ? error : `a value of type ${typeof error}`;
  }
  const text = error.message ? `${error.name}: ${error.message}` : error.name;
  for (const line of String(error.stack ?? "").split("\n")) {
    const match = line.match(/((?:file:\/\/)?\/[^()]*?|[A-Za-z]:\\[^()]*?):(\d+)(?::\d+)?\)?$/);
    if (!match) {
      continue;
    }
    const location = match[1].startsWith("file:") ? fileURLToPath(match[1]) : match[1];
    const relative = path.relative(root, location);
    if (!relative.startsWith("..") && !path.isAbsolute(relative) && !relative.includes("node_modules")) {
      const code = sourceLine(location, Number(match[2]));
      return code ? `${text} (${relative}, line ${match[2]}: ${code})` : `${text} (${relative}, line ${match[2]})`;
    }
  }
  return text;
}

// Returns the text and place of a syntax error: only Node's own check says where it is.
function syntaxError(error, location) {
  const check = childProcess.spawnSync(process.execPath, ["--check", location], { encoding: "utf8", timeout: 10_000 });
  const line = check.stderr?.match(/^(?:file:\/\/)?.*:(\d+)$/m)?.[1];
  const place = line === undefined ? "" : ` (${path.relative(root, location)}, line ${line}: ${sourceLine(location, Number(line))})`;
  return `SyntaxError: ${error.message}${place}`;
}

function sourceLine(location, line) {
  try {
    return fs.readFileSync(location, "utf8").split("\n")[line - 1]?.trim();
  } catch {
    return undefined;
  }
}

main();

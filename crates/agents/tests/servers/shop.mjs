// The scripted shop agent that the servers in this folder answer with, and their HTTP helpers. Node's standard library only.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';

const tools = {
  get_order: ({ order_id }) => ({ order_id, status: 'shipped' }),
  cancel_order: ({ order_id }) => ({ cancelled: order_id }),
  get_weather: ({ city }) => {
    if (city === 'Oslo') throw new Error(`weather station ${city} is offline`);
    return { city, celsius: 18 };
  },
  delete_account: ({ account_id }) => ({ deleted: account_id }),
};

export const toolNames = Object.keys(tools);

// Calls a tool: { name, arguments, output } or { name, arguments, error }.
export function call(name, args) {
  try {
    return { name, arguments: args, output: tools[name](args) };
  } catch (error) {
    return { name, arguments: args, error: error.message };
  }
}

// Answers the last of the user's messages: `steps` are lists of calls, made together; then comes `text`.
// `approval` is a call that a person has to approve first.
export async function turn(userTexts) {
  const asked = userTexts.at(-1) ?? '';
  const order = asked.match(/order (\w+)/i)?.[1];
  const city = asked.match(/weather in (\w+)/i)?.[1];
  const account = asked.match(/delete account (\w+)/i)?.[1];

  if (/fail now/i.test(asked)) throw new Error('the model is not available');
  if (/slow hello/i.test(asked)) {
    await setTimeout(50);
    return { steps: [], text: asked };
  }
  if (/hello/i.test(asked)) return { steps: [], text: 'Hello! How can I help?' };
  if (/remember the number/i.test(asked)) return { steps: [], text: `I will remember ${asked.match(/\d+/)}.` };
  if (/which number/i.test(asked)) {
    const told = userTexts.findLast((text) => /remember the number/i.test(text));
    return { steps: [], text: told ? `The number was ${told.match(/\d+/)}.` : 'I know no number.' };
  }
  if (/cancel order/i.test(asked)) {
    const cancel = call('cancel_order', { order_id: order, reason: 'customer request' });
    const weather = call('get_weather', { city });
    return { steps: [[cancel, weather]], text: `Order ${order} is cancelled. ${weatherText(weather)}` };
  }
  if (order) {
    const steps = [[call('get_order', { order_id: order })]];
    let text = `Order ${order} has shipped.`;
    if (city) {
      const weather = call('get_weather', { city });
      steps.push([weather]);
      text += ` ${weatherText(weather)}`;
    }
    return { steps, text };
  }
  if (account) {
    const approval = { name: 'delete_account', arguments: { account_id: account } };
    return { steps: [], text: '', approval, question: `Delete account ${account}?` };
  }
  return { steps: [], text: 'I can help with orders and the weather.' };
}

// The rest of the turn, after a person approved or denied a call.
export function afterApproval(approval, approved) {
  const account = approval.arguments.account_id;
  if (!approved) return { steps: [], text: `I did not delete account ${account}.` };
  return { steps: [[call(approval.name, approval.arguments)]], text: `Account ${account} is deleted.` };
}

function weatherText({ arguments: { city }, output, error }) {
  return error ? `The weather in ${city} is not available.` : `It is ${output.celsius} degrees in ${city}.`;
}

export const pieces = (text, pattern = /\S+\s*/g) => text.match(pattern) ?? [];
export const tokens = (...texts) => texts.join(' ').match(/\w+/g)?.length ?? 0;

// Serves `routes`, a map from "METHOD /path" to a handler that gets { request, response, url, params, body }.
// A segment of a path that begins with ":" is a parameter.
export function serve(routes) {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost');
    for (const [route, handler] of Object.entries(routes)) {
      const params = match(route, request.method, url.pathname);
      if (!params) continue;
      const body = request.method === 'POST' ? await json(request).catch(() => undefined) : undefined;
      await handler({ request, response, url, params, body });
      return;
    }
    send(response, 404, { error: 'not found' });
  });
  const port = Number(process.argv[2] ?? process.env.PORT ?? 8080);
  server.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
  process.on('SIGTERM', () => process.exit(0));
}

function match(route, method, path) {
  const [expectedMethod, pattern] = route.split(' ');
  const expected = pattern.split('/');
  const actual = path.split('/');
  if (method !== expectedMethod || expected.length !== actual.length) return undefined;
  const params = {};
  for (const [i, segment] of expected.entries()) {
    if (segment.startsWith(':')) params[segment.slice(1)] = decodeURIComponent(actual[i]);
    else if (segment !== actual[i]) return undefined;
  }
  return params;
}

export function send(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

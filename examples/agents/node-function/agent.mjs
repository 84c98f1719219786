// A shop agent as plain functions. It needs Node 18 or newer, no packages and no server.
//
//   node agent.mjs "Where is order 42?"
//
// `answer` is a function, `answerAsync` an async function, and `converse` takes the messages of a conversation.
// Each returns { response: text, toolCalls: [{ name, arguments, result or error }] }.
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const tools = {
  get_order: ({ order_id }) => ({ order_id, status: 'shipped' }),
  cancel_order: ({ order_id }) => ({ cancelled: order_id }),
  get_weather: ({ city }) => {
    if (city === 'Oslo') throw new Error(`weather station ${city} is offline`);
    return { city, celsius: 18 };
  },
};

export function answer(question) {
  return run([question]);
}

export async function answerAsync(question) {
  if (/slow hello/i.test(question)) await setTimeout(50);
  return run([question]);
}

// Takes [{ role: "user" | "assistant", content: text }, …]; answers the last.
export async function converse(messages) {
  return run(messages.filter(({ role }) => role === 'user').map(({ content }) => content));
}

function run(questions) {
  const toolCalls = [];
  for (;;) {
    const step = decide(questions, toolCalls);
    if (typeof step === 'string') return { response: step, toolCalls };
    for (const [name, args] of step) toolCalls.push(call(name, args));
  }
}

function call(name, args) {
  try {
    return { name, arguments: args, result: tools[name](args) };
  } catch (error) {
    return { name, arguments: args, error: error.message };
  }
}

// Stands in for a model: returns the answer, or the tools to call, as [name, arguments] pairs.
function decide(questions, done) {
  const question = questions.at(-1);
  const order = question.match(/order (\w+)/i)?.[1];
  const city = question.match(/weather in (\w+)/i)?.[1];

  if (/fail now/i.test(question)) throw new Error('the model is not available');
  if (/slow hello/i.test(question)) return question;
  if (/hello/i.test(question)) return 'Hello! How can I help?';
  if (/remember the number/i.test(question)) return `I will remember ${question.match(/\d+/)}.`;
  if (/which number/i.test(question)) {
    const told = questions.findLast((text) => /remember the number/i.test(text));
    return told ? `The number was ${told.match(/\d+/)}.` : 'I know no number.';
  }
  if (/cancel order/i.test(question)) {
    if (done.length === 0) {
      return [
        ['cancel_order', { order_id: order, reason: 'customer request' }],
        ['get_weather', { city }],
      ];
    }
    return `Order ${order} is cancelled. ${weather(done[1])}`;
  }
  if (order) {
    if (done.length === 0) return [['get_order', { order_id: order }]];
    if (done.length === 1 && city) return [['get_weather', { city }]];
    const text = `Order ${order} has ${done[0].result.status}.`;
    return city ? `${text} ${weather(done[1])}` : text;
  }
  return 'I can help with orders and the weather.';
}

function weather({ arguments: { city }, result }) {
  return result ? `It is ${result.celsius} degrees in ${city}.` : `The weather in ${city} is not available.`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(answer(process.argv[2]), null, 2));
}

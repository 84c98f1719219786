// Lists in the shapes of the APIs, and objects of a project's own.
export const openaiTools = [
  {
    type: "function" as const,
    function: {
      name: "list_orders",
      description: "Lists orders",
      parameters: { type: "object", properties: { status: { type: "string" } }, required: [] },
    },
  },
  {
    type: "function" as const,
    name: "get_order",
    description: "Gets an order",
    parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"], additionalProperties: false },
    strict: true,
  },
];

export const anthropicTools = [
  {
    name: "refund",
    description: "Refunds an order",
    input_schema: { type: "object" as const, properties: { id: { type: "string" }, reason: { type: "string" } }, required: ["id"] },
  },
];

// The field map of a registry.
export const forecast = {
  name: "get_forecast",
  description: "Forecasts the weather",
  schema: { city: { type: "string" }, days: { type: "number", optional: true } },
  requiresConfirmation: false,
  execute: async () => null,
};

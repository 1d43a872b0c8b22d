import type { AgentCard } from "@a2a-js/sdk";
import { HOPS_EXTENSION } from "../../contract/a2a.ts";
import type { Agent } from "../../records/agents/agent.ts";

const PROTOCOLS = ["1.0", "0.3"];
const TEXT = ["text/plain"];

/** What anybody is told of a published agent. `base`: where this daemon is reached. */
export function agentCard({ id, roles }: Agent, base: string, version: string): AgentCard {
  const description = `Agent ${id} of a Guildhall${roles.length > 0 ? `; roles: ${roles.join(", ")}` : ""}.`;
  const url = `${base.replace(/\/+$/, "")}/a2a/${id}`;
  return {
    name: id,
    description,
    supportedInterfaces: PROTOCOLS.map((protocolVersion) => ({ url, protocolBinding: "JSONRPC", tenant: "", protocolVersion })),
    provider: undefined,
    version,
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [
        {
          uri: HOPS_EXTENSION,
          description: "Houses that a task has passed and its depth; a message that is sent again with its id opens no second task.",
          required: false,
          params: undefined,
        },
      ],
    },
    securitySchemes: {
      bearer: {
        scheme: {
          $case: "httpAuthSecurityScheme",
          value: { description: "A token of `guildhall token create --scope guest:<name>`.", scheme: "Bearer", bearerFormat: "" },
        },
      },
    },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: TEXT,
    defaultOutputModes: TEXT,
    skills: [
      {
        id,
        name: id,
        description,
        tags: roles.length > 0 ? [...roles] : ["agent"],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
}

/** What a program must have in its environment so that none of its daemons asks a real provider, whatever keys the developer has. */
export const NO_REAL_MODELS: Readonly<Record<string, string>> = {
  OPENAI_API_KEY: "",
  ANTHROPIC_API_KEY: "",
  GOOGLE_GENERATIVE_AI_API_KEY: "",
  GEMINI_API_KEY: "",
  GOOGLE_API_KEY: "",
  OPENROUTER_API_KEY: "",
  GUILDHALL_LOCAL_MODELS: "off",
};

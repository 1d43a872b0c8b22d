export const SCRIPTED = "I am Guildhall's offline demo: my answers are scripted, no language model is behind them.";
export const MARK = "(Scripted answer of the offline demo.)";

const ANSWERS: readonly (readonly [RegExp, string])[] = [
  [
    /^\s*(hi|hello|hey|hallo|good (morning|afternoon|evening))\b/i,
    `Hello! ${SCRIPTED} Say something and I will answer as well as a script can.`,
  ],
  [/\b(who|what) are you\b|\byour name\b/i, `${SCRIPTED} Name a model in guildhall.yaml to talk to a real one.`],
  [
    /^\s*help\b|\bwhat can you do\b/i,
    `${SCRIPTED} I greet, I repeat what I hear, and I show that messages arrive and replies come back. With tools I also do what I am told in plain words: "list files", "read file notes.txt", "write hello to notes.txt", "run ls", "remember that I like tea", "what do you remember about tea", "write plan = ready to the shared context", "search the web for tea"; several with "then" between them.`,
  ],
  [/\b(thanks|thank you)\b/i, "You are welcome."],
  [/^\s*(bye|goodbye|see you)\b/i, "Goodbye. What we said is kept in this conversation."],
];

/** What needs no tool. */
export function smallTalk(said: string): string | undefined {
  return ANSWERS.find(([pattern]) => pattern.test(said))?.[1];
}

/** A call that somebody asked for in plain words. */
export interface Intent {
  readonly tool: string;
  /** JSON; or whatever was written, where a call was dictated. */
  readonly args: string;
}

type Read = (...parts: string[]) => Readonly<Record<string, unknown>>;
interface Rule {
  readonly tool: string;
  readonly says: RegExp;
  readonly args: Read;
}

const rule = (tool: string, says: RegExp, args: Read): Rule => ({ tool, says, args });
const SHARED = "(?:the |our )?shared (?:context|memory|pool)";

/** The first that fits counts. */
const RULES: readonly Rule[] = [
  rule(
    "context_write",
    new RegExp(`^(?:write|put|set|store)\\s+([\\w./-]+)\\s*[=:]\\s*(.+?)\\s+(?:in|to|into)\\s+${SHARED}$`, "is"),
    (key, value) => ({
      key,
      value: jsonOrText(value ?? ""),
    }),
  ),
  rule("context_read", new RegExp(`^(?:read|get|show)\\s+([\\w./-]+)\\s+(?:from|in|of)\\s+${SHARED}$`, "is"), (key) => ({ key })),
  rule("context_list", new RegExp(`^(?:list|show(?: me)?|what is in|what's in)\\s+${SHARED}$`, "is"), () => ({})),
  rule("web_search", /^(?:search|look)(?: on| in)? the web for (.+)$/is, (query) => ({ query: plain(query) })),
  rule("web_search", /^web search(?: for)?:? (.+)$/is, (query) => ({ query: plain(query) })),
  rule("web_fetch", /^(?:fetch|read|open|visit|summari[sz]e)(?: the)?(?: page| site| url)?(?: at)? <?(https?:\/\/[^\s>]+)>?$/is, (url) => ({
    url,
  })),
  rule(
    "session_search",
    /^(?:search|look through)(?: our| my| past| earlier| the)* (?:conversations?|sessions?|chats?) for (.+)$/is,
    (query) => ({
      query: plain(query),
    }),
  ),
  rule("file_search", /^(?:search|look)(?: through)?(?: the| my)? (?:files|workspace|code) for (.+)$/is, (pattern) => ({
    pattern: plain(pattern),
  })),
  rule("file_search", /^find (.+) in (?:the |my )?(?:files|workspace|code)$/is, (pattern) => ({ pattern: plain(pattern) })),
  rule(
    "file_list",
    /^(?:list|show)(?: me)?(?: all| the| my)* (?:files|folder|directory|workspace)(?: (?:in|of|at|under) (?:the folder )?(\S+))?$/is,
    (path) => (path === undefined ? {} : { path: plain(path) }),
  ),
  rule("file_read", /^(?:read|show|open|print)(?: me)?(?: the)? (?:file|contents? of(?: the)?(?: file)?) (.+)$/is, (path) => ({
    path: plain(path),
  })),
  rule("file_read", /^what is in (?:the )?file (.+)$/is, (path) => ({ path: plain(path) })),
  rule("file_edit", /^(?:replace|change) (.+?) (?:with|by|to) (.+?) in (?:the )?(?:file )?(\S+)$/is, (old, next, path) => ({
    path: plain(path),
    old: plain(old),
    new: plain(next),
  })),
  rule("file_write", /^(?:write|save|put) (.+?) (?:in|to|into) (?:the |a )?(?:file )?([\w./-]*\.[\w-]+)$/is, (content, path) => ({
    path,
    content: plain(content),
  })),
  rule("file_write", /^(?:write|save|put) (.+?) (?:in|to|into) (?:the |a )?file (\S+)$/is, (content, path) => ({
    path: plain(path),
    content: plain(content),
  })),
  rule("terminal", /^(?:run|execute)(?: the)?(?: command)?:? (.+)$/is, (command) => ({ command: plain(command) })),
  rule("memory_save", /^(?:remember|note|keep in mind)(?: that|:)? (.+)$/is, (text) => ({ text: plain(text) })),
  rule("memory_search", /^(?:what|do) you (?:remember|know)(?: about| of)? (.+)$/is, (query) => ({ query: plain(query) })),
  rule("memory_search", /^what do you (?:remember|know)(?: about| of)? (.+)$/is, (query) => ({ query: plain(query) })),
  rule("memory_search", /^(?:recall|search (?:your |the )?(?:memory|notes) for) (.+)$/is, (query) => ({ query: plain(query) })),
  rule("memory_forget", /^forget (?:about |that |the note )?(.+)$/is, (query) => ({ query: plain(query) })),
  rule("mail_send", /^(?:send |write )?(?:a )?mail to ([\w-]+(?::[\w-]+)?)(?:,|:| saying| that)? (.+)$/is, (to, content) => ({
    to,
    type: "note",
    content: plain(content),
  })),
  rule("mail_read", /^(?:read|check|show)(?: me)?(?: my| the)? mail$/is, () => ({})),
  rule("agent_delegate", /^(?:delegate to|ask|have) (?:the )?agent ((?:peer:)?[\w-]+)(?: to|:)? (.+)$/is, (agent, goal) => ({
    agent,
    goal: plain(goal),
  })),
  rule("delegate_task", /^delegate(?: the task)?:? (.+)$/is, (goal) => ({ goal: plain(goal) })),
  rule("task_check", /^(?:check|how is) (?:the )?task (\S+)$/is, (id) => ({ id })),
  rule("claim", /^claim (.+)$/is, (resource) => ({ resource: plain(resource) })),
  rule("todo", /^(?:show|what is on)(?: me)?(?: my| the)? to-?do(?: list)?$/is, () => ({})),
  rule("todo", /^(?:plan|to-?do):\s*(.+)$/is, (items) => ({
    items: (items ?? "").split(/\s*[,;\n]\s*/).flatMap((text) => (text === "" ? [] : [{ text, state: "pending" }])),
  })),
  rule("clarify", /^ask me (.+)$/is, (question) => ({ question: plain(question) })),
  rule("agent_list", /^(?:who else is (?:there|here)|(?:list|show)(?: me)?(?: the| all)* agents)$/is, () => ({})),
];

const DICTATED = /^call (?:the tool )?`?([\w.:-]+)`?(?: with)?(?:\s+(.+))?$/is;
const POLITE =
  /^(?:please|now|next|also|first|finally|and|can you|could you|would you|will you|i want you to|i need you to|let's|hey|ok|okay)[,:]?\s+/i;

/** Longer ones are no request in plain words, and would take long to look through. */
const MAX_CHARACTERS = 4_000;

/** What the words ask to be called, one step after another; the calls of one step are made at once. Empty: nothing. */
export function intentsOf(text: string): Intent[][] {
  const end = text.slice(-MAX_CHARACTERS);
  for (const words of [text, end.split(/\n\s*\n/).at(-1) ?? "", end.trim().split("\n").at(-1) ?? ""]) {
    if (words.length > MAX_CHARACTERS) continue;
    const steps = words.split(/[,;.]?\s+(?:and )?then,?\s+/i).map(stepOf);
    if (steps.every((step) => step.length > 0)) return steps;
    const whole = stepOf(words);
    if (whole.length > 0) return [whole];
  }
  return [];
}

/** `read file a and read file b` is two calls, unless the whole is one. */
function stepOf(words: string): Intent[] {
  const parts = words.split(/\s+and\s+/i).map(intentOf);
  if (parts.length > 1 && parts.every((part) => part !== null)) return parts as Intent[];
  const whole = intentOf(words);
  return whole === null ? [] : [whole];
}

function intentOf(written: string): Intent | null {
  let words = written.trim();
  for (let before = ""; before !== words; ) {
    before = words;
    words = words.replace(POLITE, "").trim();
  }
  const [, tool, args] = DICTATED.exec(words) ?? [];
  if (tool !== undefined && (args === undefined || args.startsWith("{"))) return { tool, args: args ?? "{}" };
  const asked = words.replace(/\s*[?!.]+$/, "");
  for (const { tool: name, says, args: read } of RULES) {
    const found = says.exec(asked);
    if (found) return { tool: name, args: JSON.stringify(read(...(found.slice(1) as string[]))) };
  }
  return null;
}

/** Without the quotes or backticks around it. */
function plain(text: string | undefined): string {
  const trimmed = (text ?? "").trim();
  return /^(["'`])(.*)\1$/s.exec(trimmed)?.[2] ?? trimmed;
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return plain(text);
  }
}

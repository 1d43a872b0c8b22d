import type { Label } from "../../../kernel/label.ts";

/** Files that programs keep keys and passwords in. Samples (`.env.example`) are meant to be read. */
const NAMES =
  /^(\.env(\..+)?|.+\.env|.+\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_(rsa|dsa|ecdsa|ed25519)(_sk)?|\.?credentials(\..+)?|.*[._-]credentials(\.(json|ya?ml|ini|toml))?|\.npmrc|\.netrc|_netrc|\.pypirc|\.pgpass|\.git-credentials|\.htpasswd|secrets?\.(json|ya?ml|toml|env)|service-account.*\.json|operator\.token)$/i;
const SAMPLES = /[._-](example|sample|template|dist)$/i;
const CONTENT = [
  /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/,
  /\bsk-(?:[a-z]+-)*[A-Za-z0-9_-]{20,}/,
  /\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{30,}/,
  /\bgithub_pat_[A-Za-z0-9_]{30,}/,
  /\bglpat-[A-Za-z0-9_-]{20,}/,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bAIza[A-Za-z0-9_-]{35}/,
  /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/,
  /\bnpm_[A-Za-z0-9]{36}/,
  /\bhf_[A-Za-z0-9]{30,}/,
  /\b\d{8,10}:AA[A-Za-z0-9_-]{33}/,
];
/** More is not looked through at once; whoever hides a key behind it has read the file anyway. */
const LOOKED_AT = 1024 * 1024;

export function isSecretName(path: string): boolean {
  const name = path.split("/").at(-1) ?? "";
  return NAMES.test(name) && !SAMPLES.test(name);
}

export function holdsSecret(text: string): boolean {
  const part = text.slice(0, LOOKED_AT);
  return CONTENT.some((pattern) => pattern.test(part));
}

/** What a turn carries once it has seen this of a file. */
export function labelsOf(path: string, text: string): { readonly labels?: readonly Label[] } {
  return isSecretName(path) || holdsSecret(text) ? { labels: ["secret"] } : {};
}

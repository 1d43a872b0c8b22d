import type { CallToolResult } from "@modelcontextprotocol/client";
import { canonicalJson } from "../../../kernel/canonical-json.ts";
import type { Label } from "../../../kernel/label.ts";
import type { Image } from "../../../kernel/model.ts";
import { shown } from "../../../kernel/shown.ts";
import type { ToolOutcome } from "../tool.ts";

const IMAGES_AT_MOST = 8;
/** Base64, of one image: 5 MB as a file. */
const IMAGE_AT_MOST = 7_000_000;
const IMAGE_TYPES: readonly string[] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

type Block = CallToolResult["content"][number];

/** What a server answered, as a model reads it. */
export function outcomeOf(result: CallToolResult, labels: readonly Label[]): ToolOutcome {
  const images: Image[] = [];
  const texts = (result.content ?? []).map((block) => textOf(block, images)).filter((text) => text !== "");
  const said = texts.join("\n");
  const { structuredContent } = result;
  // Servers say structured answers a second time as text, for clients that read nothing else.
  const isTold = structuredContent !== undefined && texts.some((text) => isJsonOf(text, structuredContent));
  const output =
    structuredContent === undefined || isTold ? said : said === "" ? structuredContent : `${said}\n${JSON.stringify(structuredContent)}`;
  return { output, labels, ...(images.length === 0 ? {} : { images }), ...(result.isError ? { failed: true } : {}) };
}

function textOf(block: Block, images: Image[]): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
      return imageOf(block.mimeType, block.data, images);
    case "audio":
      return `[audio, ${shown(block.mimeType)}, ${sizeOf(block.data)}: it cannot be shown]`;
    case "resource_link":
      return `[resource ${shown(block.name)}: ${shown(block.uri)}${block.description ? `: ${shown(block.description)}` : ""}]`;
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `[resource ${shown(resource.uri)}]\n${resource.text}`;
      const { mimeType = "" } = resource;
      if (IMAGE_TYPES.includes(mimeType)) return `[resource ${shown(resource.uri)}] ${imageOf(mimeType, resource.blob, images)}`;
      return `[resource ${shown(resource.uri)}, ${shown(mimeType || "binary")}, ${sizeOf(resource.blob)}: it cannot be shown]`;
    }
    default:
      return `[something that cannot be shown: ${shown(String((block as { type: unknown }).type).slice(0, 100))}]`;
  }
}

function imageOf(mediaType: string, data: string, images: Image[]): string {
  const told = `${shown(mediaType.slice(0, 100))}, ${sizeOf(data)}`;
  if (!IMAGE_TYPES.includes(mediaType)) return `[image, ${told}: of a kind that cannot be shown]`;
  if (data.length > IMAGE_AT_MOST) return `[image, ${told}: too large]`;
  if (images.length >= IMAGES_AT_MOST) return `[image, ${told}: one too many]`;
  images.push({ mediaType, data });
  return `[image, ${told}]`;
}

function sizeOf(base64: string): string {
  return `${Math.ceil((base64.length * 3) / 4 / 1024)} KB`;
}

function isJsonOf(text: string, value: unknown): boolean {
  try {
    return canonicalJson(JSON.parse(text)) === canonicalJson(value);
  } catch {
    return false;
  }
}

import { decoded } from "./decoded.ts";
import { readPage } from "./read-page.ts";
import type { PageToRead } from "./read-page-aside.ts";

process.once("message", (toRead) => {
  const { bytes, contentType, url } = toRead as PageToRead;
  process.send?.(readPage(decoded(bytes, contentType), url));
});

import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";

const db = new DatabaseSync(workerData as string, { timeout: 0 });

parentPort?.on("message", (wanted: "checkpoint" | "close") => {
  if (wanted === "close") {
    db.close();
    parentPort?.close();
    return;
  }
  try {
    // Without waiting for anybody, and without anybody waiting for it.
    db.exec("PRAGMA wal_checkpoint(PASSIVE)");
  } catch {
    // Somebody else is at it, or the disk is in trouble: the next commit of the writer will tell.
  }
  parentPort?.postMessage("done");
});

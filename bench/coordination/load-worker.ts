import { serve } from "../child.ts";
import { Load, type LoadResult, type LoadTask } from "./load.ts";

await serve<LoadTask, LoadResult>(async (task) => {
  const load = new Load(task);
  try {
    return await load.run();
  } finally {
    load.close();
  }
});

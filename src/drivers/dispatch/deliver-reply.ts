import { markSent } from "../../acts/settle-delivery.ts";
import type { DeliveryPayload } from "../../acts/work-kinds.ts";
import type { Store } from "../../store/store.ts";
import type { Handler } from "./dispatcher.ts";

/** Who posts messages through the API collects the replies there: a committed reply has arrived as soon as its run can be read. */
export function deliverReply(store: Store): Handler {
  return (item) => markSent(store, item, item.payload as DeliveryPayload, "api");
}

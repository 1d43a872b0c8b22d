/** Imported from this folder, so that the peers' own package is where it is looked up; its types are only there once installed. */
export function loadPeer<Module>(name: string): Promise<Module> {
  return import(name) as Promise<Module>;
}

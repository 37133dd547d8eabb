/**
 * Changes one line of the program as it is loaded, to show that a test notices the fault. Loaded
 * into the server by `faultEnv`; does nothing in any other process.
 */
import { registerHooks } from 'node:module'

/** `find` must occur in the module exactly once; `file` is the end of its URL. */
export interface PlantedFault {
  readonly file: string
  readonly find: string
  readonly replace: string
}

const VARIABLE = 'TIDINGS_PLANTED_FAULT'

/** The environment of a server with this fault. */
export function faultEnv(fault: PlantedFault): Readonly<Record<string, string>> {
  return {
    NODE_OPTIONS: `--import=${import.meta.filename}`,
    [VARIABLE]: JSON.stringify(fault),
  }
}

// biome-ignore lint/style/noProcessEnv: a module that is loaded by NODE_OPTIONS has no flags.
const planted = process.env[VARIABLE]
if (planted !== undefined) {
  const { file, find, replace }: PlantedFault = JSON.parse(planted)
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context)
      if (!url.endsWith(file)) return loaded
      const { source = '' } = loaded
      const text =
        typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString()
      const parts = text.split(find)
      if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${find}`)
      return { ...loaded, source: parts.join(replace) }
    },
  })
}

import type { ConnectionAction, Wire } from './wire.ts'

/** How long a client may take to read a refusal before it is disconnected. */
const REFUSED_MS_MAX = 5000

const TEXT = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }

/** The message when a client has reached its limit of memory. */
export const HOLDS_TOO_MUCH =
  'this replica holds too many bytes for this client: read open responses or close watches, then retry'

/** Retry after 10 s: by then responses that their clients do not read have been aborted. */
export const MEMORY_REFUSAL: Pick<Refusal, 'headers' | 'message'> = {
  headers: { ...TEXT, 'retry-after': '10' },
  message: `${HOLDS_TOO_MUCH}\n`,
}

/** Refuses a request without calling the handler, then closes its connection. */
export function refuse(wire: Wire, status: number, message: string): void {
  send(wire, { status, headers: TEXT, message, connection: 'close' })
}

/** Refuses one request; its connection, which other clients may share, stays open. */
export function refuseForMemory(wire: Wire): void {
  send(wire, { ...MEMORY_REFUSAL, status: 429, connection: 'keep' })
}

interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly message: string
  readonly connection: ConnectionAction
}

function send(wire: Wire, { status, headers, message, connection }: Refusal): void {
  wire.begin(status, { ...headers }, connection)
  wire.releaseHeaders()
  wire.finish(wire.method === 'HEAD' ? undefined : message)
  const timer = setTimeout(() => wire.cut(), REFUSED_MS_MAX)
  wire.output.once('close', () => clearTimeout(timer))
}

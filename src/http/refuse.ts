import type { ConnectionFate, Wire } from './wire.ts'

/** How long a client may take to read why it was refused. */
const REFUSED_MS_MAX = 5000

const TEXT = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }

/** Told when there is no memory for more of a client's requests. */
export const HOLDS_TOO_MUCH =
  'this replica holds too many bytes for this client: read open responses or close watches, then retry'

/** Ten seconds cut those who do not read. */
export const MEMORY_REFUSAL: Pick<Told, 'headers' | 'message'> = {
  headers: { ...TEXT, 'retry-after': '10' },
  message: `${HOLDS_TOO_MUCH}\n`,
}

/** Answers a request without asking anybody, and is done with its client. */
export function refuse(wire: Wire, status: number, message: string): void {
  tell(wire, { status, headers: TEXT, message, connection: 'close' })
}

/** Answers one request of a connection that others may share. */
export function refuseForMemory(wire: Wire): void {
  tell(wire, { ...MEMORY_REFUSAL, status: 429, connection: 'keep' })
}

interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly message: string
  readonly connection: ConnectionFate
}

function tell(wire: Wire, { status, headers, message, connection }: Told): void {
  wire.begin(status, { ...headers }, connection)
  wire.forget()
  wire.finish(wire.method === 'HEAD' ? undefined : message)
  const timer = setTimeout(() => wire.cut(), REFUSED_MS_MAX)
  wire.output.once('close', () => clearTimeout(timer))
}

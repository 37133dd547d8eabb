import type { Wire } from './wire.ts'

/** How long a client may take to read why it was refused. */
const REFUSED_MS_MAX = 5000

/** Answers a request without asking anybody, and is done with its client. */
export function refuse(wire: Wire, status: number, message: string): void {
  wire.begin(
    status,
    { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
    'close',
  )
  wire.forget()
  wire.finish(wire.method === 'HEAD' ? undefined : message)
  const timer = setTimeout(() => wire.cut(), REFUSED_MS_MAX)
  wire.output.once('close', () => clearTimeout(timer))
}

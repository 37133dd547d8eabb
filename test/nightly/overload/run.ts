/**
 * Ten times the peak load, for a minute or as many seconds as the first argument says: as many
 * requests as fit into the queue, then more than that. With `http1` as the second argument, more
 * than fit over HTTP/1.1 instead: 3,000 handshakes take their time, and the memory of so many
 * connections still grows while each sends its first long response, which is reported as a failure.
 * Prints the results; exits with 1 when they are not what the server promises.
 */
import { complaints, overload, PAST_WAITING, PAST_WAITING_HTTP1, WAITING } from './overload.ts'

const seconds = Number(process.argv[2] ?? 60)
const crowds = process.argv[3] === 'http1' ? [PAST_WAITING_HTTP1] : [WAITING, PAST_WAITING]
for (const crowd of crowds) {
  const report = await overload(seconds * 1000, crowd)
  const wrong = complaints(report)
  process.stdout.write(`${JSON.stringify({ ...report, wrong }, undefined, 2)}\n`)
  if (wrong.length > 0) process.exitCode = 1
}

/**
 * Ten times more than the server can do, for a minute or as many seconds as the argument says.
 * Prints what happened; ends with 1 when that is not what the server promises.
 */
import { complaints, overload } from './overload.ts'

const seconds = Number(process.argv[2] ?? 60)
const report = await overload(seconds * 1000)
const wrong = complaints(report)
process.stdout.write(`${JSON.stringify({ ...report, wrong }, undefined, 2)}\n`)
process.exitCode = wrong.length === 0 ? 0 : 1

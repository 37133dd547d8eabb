/**
 * One attack, in its own process, so that the work of the attacker is not measured as latency of
 * others: `node attacker.ts <attack> <port> <scale>`. Runs until it is killed, at a lower priority
 * than the server and the measuring clients, since all share the CPUs of one machine.
 */
import { constants, getPriority, setPriority } from 'node:os'
import type { Target } from './attack.ts'
import { ATTACKS, keyOf } from './attacks.ts'

const NICE = 10

const [key, port, scale] = process.argv.slice(2)
const attack = ATTACKS.find((one) => keyOf(one) === key)
if (attack === undefined) throw new Error(`there is no attack "${key}"`)
setPriority(Math.min(getPriority() + NICE, constants.priority.PRIORITY_LOW))
const target: Target = {
  port: Number(port),
  scaled: (full) => Math.max(1, Math.round(full * Number(scale))),
}
process.on('disconnect', () => process.exit())
process.send?.(await attack.run(target))

/**
 * One attack, in a process of its own, so that what it costs the attacker does not count as the wait
 * of others: `node attacker.ts <attack> <port> <scale>`. Runs until it is killed, below the priority
 * of the server and of those who measure, since all share the processors of one machine.
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

/** Finds commands such as `npm test -- memory` in texts, and checks that they exist. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { BENCHMARKS, SUITES } from './suites.ts'

const root = join(import.meta.dirname, '..')
const COMMAND =
  /\bnpm (test|run)(?: --silent| -s)?(?: ([a-z](?:[\w:-]*\w)?))?(?: -- (--list|[a-z](?:[\w:-]*\w)?))?/g

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const tools = readFileSync(join(root, 'tools/unpack'), 'utf8').matchAll(/^ {2}([\w-]+)\) exec/gm)
/** What the first argument of a script must be, keyed by script. */
const ARGUMENTS: Readonly<Record<string, ReadonlySet<string>>> = {
  test: new Set([...SUITES.map(({ name }) => name), '--list']),
  bench: new Set(BENCHMARKS.map(({ name }) => name)),
  tools: new Set([...tools].map(([, name = '']) => name)),
}

/** The npm commands in a text whose script, suite, benchmark or tool does not exist. */
export function unknownCommands(text: string): readonly string[] {
  const found = [...text.matchAll(COMMAND)].filter(([, verb, name, argument]) => {
    const script = verb === 'test' ? 'test' : name
    // `npm run` alone is a phrase, not a command.
    if (script === undefined) return false
    if (!(script in scripts)) return true
    const known = ARGUMENTS[script]
    return known !== undefined && argument !== undefined && !known.has(argument)
  })
  return found.map(([command]) => command)
}

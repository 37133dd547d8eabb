/** The server, from its sources, with the bug that TIDINGS_PLANTED_BUG names. */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { withPatches } from '../../simulation/kernel/interception.ts'
import { plantedBugs } from './planted.ts'

const root = new URL('../../../', import.meta.url)
// biome-ignore lint/style/noProcessEnv: its arguments are those of the server.
const name = process.env['TIDINGS_PLANTED_BUG']
const bug = plantedBugs.find((candidate) => candidate.name === name)
if (bug === undefined) throw new Error(`there is no planted bug ${name}`)
const files = Map.groupBy(bug.patches, ({ file }) => new URL(file, root).href)
registerHooks({
  load: (url, context, next) => {
    const patches = files.get(url)
    if (patches === undefined) return next(url, context)
    const source = withPatches(readFileSync(fileURLToPath(url), 'utf8'), patches)
    return { format: 'module-typescript', source, shortCircuit: true }
  },
})
await import('../../../src/main.ts')

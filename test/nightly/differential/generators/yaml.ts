/** A tree as YAML, in the various styles of people and tools. */
import type { Random } from '../../../support/random.ts'
import { Members, type Tree, treeText } from '../../fuzz/tree.ts'

const PLAIN_SCALARS = [
  'yes',
  'off',
  '0755',
  '0x1f',
  '1_000',
  '~',
  '1:30',
  '1e3',
  '!!str 5',
  '2026-01-02',
  '.5',
  'a b  c',
] as const
const ENDS = ['', '', '', '', '\n---\n', '\n---', '\n---\n# end\n', '\n...\n', '\n# end'] as const
const BEGINNINGS = ['', '', '', '---\n', '# first\n', '%YAML 1.1\n---\n'] as const

export function yamlText(random: Random, tree: Tree): string {
  const text = random.chance(0.85) ? block(random, tree, '') : treeText(tree)
  const whole = random.pick(BEGINNINGS) + text + random.pick(ENDS)
  return random.chance(0.05) ? whole.replaceAll('\n', '\r\n') : whole
}

function block(random: Random, tree: Tree, margin: string): string {
  if (Array.isArray(tree) && tree.length > 0) {
    return tree.map((entry) => `${margin}- ${scalar(random, entry, margin)}`).join('\n')
  }
  if (!(tree instanceof Members) || tree.entries.length === 0) return margin + treeText(tree)
  return tree.entries
    .map(([name, value]) => {
      const shown = /^[a-z]+$/i.test(name) ? name : JSON.stringify(name)
      const comment = random.chance(0.03) ? ' # so' : ''
      if (isBranch(value) && random.chance(0.9)) {
        // Lists may start at the indentation of their name.
        const inner = Array.isArray(value) && random.chance(0.5) ? margin : `${margin}  `
        return `${margin}${shown}:${comment}\n${block(random, value, inner)}`
      }
      return `${margin}${shown}: ${scalar(random, value, margin)}${comment}`
    })
    .join('\n')
}

function isBranch(tree: Tree): boolean {
  return tree instanceof Members ? tree.entries.length > 0 : Array.isArray(tree) && tree.length > 0
}

function scalar(random: Random, value: Tree, margin: string): string {
  if (typeof value !== 'string') return treeText(value)
  switch (random.below(12)) {
    case 0:
      return `'${value.replaceAll("'", "''").replaceAll('\n', '\n\n')}'`
    case 1:
      return `|-\n${margin}  ${value.replaceAll('\n', `\n${margin}  `)}`
    case 2:
      return `>\n${margin}  ${value.replaceAll('\n', `\n\n${margin}  `)}`
    case 3:
      return random.pick(PLAIN_SCALARS)
    case 4:
      return /^[\w./-]+$/.test(value) ? value : JSON.stringify(value)
    case 5:
      return JSON.stringify(value).replaceAll(' ', () => (random.chance(0.5) ? '\n' : ' '))
    default:
      return JSON.stringify(value)
  }
}

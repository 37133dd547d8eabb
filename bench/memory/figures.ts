/** Prints measurements next to their upper bounds. */
export class Figures {
  areMet = true

  check(
    name: string,
    value: number,
    bound: { readonly atMost: number; readonly unit: string },
  ): void {
    const { atMost, unit } = bound
    const isMet = value <= atMost
    this.areMet &&= isMet
    const verdict = isMet ? '' : '   MISSED'
    process.stdout.write(
      `${name}: ${value.toFixed(2)} ${unit}, at most ${atMost} ${unit}${verdict}\n`,
    )
  }

  note(name: string, value: number, unit: string): void {
    process.stdout.write(`${name}: ${value.toFixed(2)} ${unit}\n`)
  }
}

// Virtual calls, inlined lambdas, and exceptions that run destructors on their way: a second of CPU time.
// main, run_virtual, Square::area or Circle::area, burn_rounds;
// main, attempt, 9 times thrower, then either the C++ runtime or Guard::~Guard and burn_rounds.
#include "burn.h"
#include <stdexcept>

struct Shape {
  virtual unsigned long area(unsigned long side) const = 0;
  virtual ~Shape() = default;
};

struct Square : Shape {
  NOIPA unsigned long area(unsigned long side) const override {
    auto burn = [side](unsigned long scale) { burn_rounds(side * scale); return side; };
    unsigned long result = burn(40);
    KEEP_FRAME();
    return result * result;
  }
};

struct Circle : Shape {
  NOIPA unsigned long area(unsigned long side) const override {
    auto twice = [](auto &&action) { action(); action(); };
    twice([side] { burn_rounds(side * 10); });
    KEEP_FRAME();
    return side * 3;
  }
};

struct Guard {
  NOIPA ~Guard() {
    burn_rounds(2000);
    KEEP_FRAME();
  }
};

NOIPA unsigned long run_virtual(const Shape &shape, unsigned long side) {
  unsigned long area = shape.area(side);
  KEEP_FRAME();
  return area;
}

NOIPA void thrower(int depth) {
  Guard guard;
  if (depth == 0) throw std::runtime_error("deep down");
  thrower(depth - 1);
  KEEP_FRAME();
}

NOIPA int attempt(int depth) {
  try {
    thrower(depth);
  } catch (const std::runtime_error &) {
    KEEP_FRAME();
    return 1;
  }
  return 0;
}

int main() {
  Square square;
  Circle circle;
  unsigned long sum = 0;
  while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) < 1.0) {
    for (int i = 0; i < 20; i++) sum += run_virtual(square, 1000) + run_virtual(circle, 1000);
    for (int i = 0; i < 50; i++) sum += static_cast<unsigned long>(attempt(8));
  }
  return sum == 0;
}

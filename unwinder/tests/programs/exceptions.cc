// Stacks inside of C++: virtual calls, a lambda through the standard library, a destructor run by an exception on its
// way, and the handler that caught it.
#include "capture.h"
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual int area(int depth) const = 0;
};
struct Square : Shape {
    int area(int depth) const override {
        if (depth == 0) {
            capture("virtual");
            return 1;
        }
        return area(depth - 1) + 1;
    }
};
struct Guard {
    ~Guard() { capture("destructor"); }
};

static NOINLINE void thrower(int n) {
    Guard guard;
    if (n > 2) throw std::runtime_error(std::string(100, 'x'));
    capture("unthrown");
}
static NOINLINE int catcher(int n) {
    try {
        thrower(n);
        return 1;
    } catch (const std::exception &error) {
        capture("handler");
        return static_cast<int>(std::string(error.what()).size());
    }
}

int main(int argc, char **) {
    std::unique_ptr<Shape> shape = std::make_unique<Square>();
    int total = shape->area(10 * argc);
    std::vector<std::function<int(int)>> callbacks;
    callbacks.push_back([&](int n) {
        if (n == 1) capture("function");
        return n + total;
    });
    std::vector<int> values{3, 1, 2};
    for (auto &callback : callbacks) total += callback(1);
    std::stable_sort(values.begin(), values.end(), [&](int left, int right) {
        if (total++ == 100000) capture("sort");
        return left < right;
    });
    total += catcher(argc + 5);
    put_maps();
    return total == 0;
}

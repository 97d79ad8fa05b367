// The answers at one moment, gathered: am I fine, who holds the most, is it growing, why did it die.
#pragma once

#include "ui/view_model/explain.hpp"
#include "ui/view_model/growth.hpp"
#include "ui/view_model/model.hpp"

namespace oomlab::view {

struct Summary {
    i64 moment_us = 0;
    Health health = Health::no_data;
    std::optional<Figures> figures;
    Growth allocated, gap, outside;       // over serving, up to the moment
    const Growth* leading = nullptr;      // the one that rises most, by bytes; null when none does
    const char* leading_name = "";        // "allocated", "reserved - allocated", "outside"
    diagnosis::Growth floor;              // over completed requests: known sooner than the trend
    bool floor_known = false;             // enough requests have completed to say so
    bool floor_rises() const {
        return floor.what != diagnosis::Growing::nothing && floor.rise.risen && floor.rise.bytes_per_request >= 1;
    }
    i64 full_us = -1;                     // when the leading line meets the device's end
    const FailureNote* failure = nullptr; // the last one at or before the moment
    Explanation why;
    diagnosis::Diagnosis diagnosis;       // of that failure, or of the kill
    Chart chart;
    Owner largest = Owner::unattributed;  // who holds the most
};
// `into` is overwritten; its pointers point into itself and into the model.
void summarise(const Model& model, i64 moment_us, Summary& into);

}  // namespace oomlab::view
